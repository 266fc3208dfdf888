"""Takes measurements, day by day. Gives them as columns that are kept, with what each day depends on."""

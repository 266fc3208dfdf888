"""Reads point-to-point cabling sheets and topology files, and drafts a design from them."""

"""Takes tickets and notices, and what each place was told; decides what is new.

Gives each ticket system, chat, scheduler and webhook one up-to-date message.
"""

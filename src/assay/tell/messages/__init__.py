"""Takes the changes of tickets, and what each route was told; decides what is new.

Gives people one message about all of it: in a chat, by mail or by a pager.
"""

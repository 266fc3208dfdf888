"""Takes … Gives …"""

"""Takes a node's state; does the Redfish resources, a module a theme; gives the JSON that a GET returns."""

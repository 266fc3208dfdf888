"""Takes a node's state. Does the Redfish resources, a module a theme. Gives the JSON that a GET returns."""

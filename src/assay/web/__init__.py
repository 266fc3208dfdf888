"""What listens: agents' deliveries, and whatever else a site sends us over HTTPS."""

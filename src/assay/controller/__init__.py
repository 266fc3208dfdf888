"""The durable loop: observe, validate, decide, act, once or for ever."""

"""What history says about a change: the backtest, and how long things took. Pure over what the ledger holds."""

"""Takes the summary of a run or a comparison; formats it, one module a format; gives lines of text, JSON, JUnit, Markdown, GitHub or Nagios."""

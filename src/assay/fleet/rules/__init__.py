"""What `assay check` looks for, by theme. A rule is one function with `@rule`; importing its module enters it."""

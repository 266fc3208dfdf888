"""Takes a verb's options. Does one verb, or a group of related verbs, each module named by its verbs; imported only when that verb is called. Gives the answer on stdout."""

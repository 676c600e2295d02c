// Makes the tests' precompiled header.

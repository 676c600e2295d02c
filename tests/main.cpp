// Catch2's main, for systems whose package has no library of it.
#define CATCH_CONFIG_MAIN
#include "catch.hpp"

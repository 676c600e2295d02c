// Defines main if the package of Catch2 has no library with it.
#define CATCH_CONFIG_MAIN
#include "catch.hpp"

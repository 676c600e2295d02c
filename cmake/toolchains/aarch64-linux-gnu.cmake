# Builds for aarch64 on a machine with another processor, by the compiler of Debian's and Ubuntu's package g++-aarch64-linux-gnu. Tests run in
# the emulator of the package qemu-user.
#
# The libraries are those of the folder CMAKE_FIND_ROOT_PATH, which cmake/toolchains/aarch64_root.sh fills. Without this variable, they are
# those of the system: packages such as libfmt-dev:arm64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
if(NOT CMAKE_CXX_COMPILER)
  set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
endif()

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
if(CMAKE_FIND_ROOT_PATH)
  set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
  set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
endif()

# Programs find libraries outside of the system's folders by the path in the program. /usr/aarch64-linux-gnu has the C and C++ libraries.
find_program(PDP_QEMU NAMES qemu-aarch64 qemu-aarch64-static)
mark_as_advanced(PDP_QEMU)
if(PDP_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${PDP_QEMU}" -L /usr/aarch64-linux-gnu)
endif()

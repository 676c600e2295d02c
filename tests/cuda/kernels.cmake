# Checks that a library contains the kernel of every reduction that a communicator may run on a GPU. Searches for the names under which nvcc's
# code registers kernels:
#
#   cmake -D LIBRARY=libpdp_cuda_compiled.a -P kernels.cmake

file(STRINGS "${LIBRARY}" names REGEX "^_ZN3pdp4cuda6kernel6reduceI")
foreach(type f d NS_8BFloat16E 6__half h a i l)
  set(operations 3Sum 7Product 3Min 3Max)
  if(type MATCHES "^[hail]$")
    list(APPEND operations 6BitAnd 5BitOr)
  endif()
  foreach(operation IN LISTS operations)
    set(name "_ZN3pdp4cuda6kernel6reduceINS_4comm${operation}E${type}EE")
    if(NOT names MATCHES "${name}")
      message(SEND_ERROR "${LIBRARY} has no kernel ${name}...")
    endif()
  endforeach()
endforeach()

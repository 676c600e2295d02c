# What of pdp does not depend on a program's types, compiled once for each build: by pdp's own build, and by a project that finds an
# installed pdp.

# The sources of each component in src/, and the libraries that they need.
set(pdp_launch_sources launch.cpp)
set(pdp_launch_libraries pdp::pdp OpenSSL::Crypto ${CMAKE_DL_LIBS})
set(pdp_shm_sources shm.cpp)
set(pdp_shm_libraries pdp::launch)
set(pdp_tcp_sources tcp.cpp)
set(pdp_tcp_libraries pdp::launch Asio::Asio)
set(pdp_hierarchical_sources hierarchical.cpp)
set(pdp_hierarchical_libraries pdp::shm pdp::tcp)
set(pdp_gloo_sources gloo.cpp)
set(pdp_gloo_libraries pdp::launch gloo)
set(pdp_nccl_sources nccl.cpp)
set(pdp_nccl_libraries pdp::launch NCCL::NCCL)
set(pdp_cuda_sources cuda.cu cuda_thread.cpp)
set(pdp_cuda_libraries pdp::pdp CUDA::cublasLt CUDA::cudart)
set(pdp_onednn_sources onednn.cpp)
set(pdp_onednn_libraries pdp::pdp oneDNN::oneDNN ${CMAKE_DL_LIBS})

# CMake 3.25 knows no C++20 in CUDA. The diagnostics are of host functions that templates could call on a device, and do not.
set(pdp_cuda_options "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-std=c++20;--expt-relaxed-constexpr;-diag-suppress=20012,20014,20011,554>")

# pdp_link_if_needed(<library file> <out>): sets <out> to what target_link_libraries takes to link the library only into programs that use
# it. CMake passes such an item to the shell and the linker as it stands, so a path with other characters than these is linked always.
function(pdp_link_if_needed library out)
  if(library MATCHES "^[-A-Za-z0-9_./+@%:=]+$")
    set(library "-Wl,--push-state,--as-needed,${library},--pop-state")
  endif()
  set(${out} "${library}" PARENT_SCOPE)
endfunction()

# Warns, once, if the project is compiled without optimisation because no build type was chosen.
function(pdp_check_build_type)
  get_property(checked GLOBAL PROPERTY pdp_build_type_checked)
  set_property(GLOBAL PROPERTY pdp_build_type_checked TRUE)
  if(NOT checked AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    message(WARNING "pdp: CMAKE_BUILD_TYPE is not set, so programs are compiled without optimisation and train about 70 times slower. Say -D CMAKE_BUILD_TYPE=Release.")
  endif()
endfunction()

# pdp_compile(<component> <source dir> <out>): adds the static library pdp_<component>_compiled, compiled with the options of the directory
# that calls this, and sets <out> to what a program is to link. It is compiled only if a program links it.
function(pdp_compile component source_dir out)
  set(library pdp_${component}_compiled)
  if(NOT TARGET ${library})  # where several directories of a project find pdp, the first one has made it
    list(TRANSFORM pdp_${component}_sources PREPEND "${source_dir}/" OUTPUT_VARIABLE sources)
    add_library(${library} STATIC EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(${library} PRIVATE ${pdp_${component}_libraries})
    target_compile_options(${library} PRIVATE ${pdp_${component}_options})
    # Shared libraries link it, too.
    set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  if(component STREQUAL "onednn")  # weak references alone name it, for which linkers take nothing from an archive
    set(library "$<LINK_LIBRARY:WHOLE_ARCHIVE,${library}>")
  endif()
  set(${out} "${library}" PARENT_SCOPE)
endfunction()

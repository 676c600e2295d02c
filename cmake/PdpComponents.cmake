# The components of pdp: their dependencies, and their sources. The sources depend on no type of a program and are compiled once in each build.
# Both pdp's own build and a project that finds an installed pdp include this file.

# Each component comes after those that it needs.
set(pdp_components launch shm tcp hierarchical safetensors csv npz mpi gloo nccl cuda onednn)

# The sources of pdp::pdp, and the libraries that they link.
set(pdp_core_sources core/checkpoint.cpp core/comm.cpp core/cpu.cpp core/data.cpp core/engine.cpp core/inference.cpp core/launch.cpp core/nn.cpp core/plan.cpp core/report.cpp core/rpc.cpp core/train.cpp)
set(pdp_core_libraries Eigen3::Eigen fmt::fmt Threads::Threads ZLIB::ZLIB ${CMAKE_DL_LIBS})

# The variables of a component:
#   needs       other components that it needs
#   package     the arguments of find_package. MODULE and CONFIG keep a toolchain file that sets CMAKE_FIND_PACKAGE_PREFER_CONFIG, or that has
#               modules of its own, from defining other targets than pdp links
#   target      the target that find_package defines
#   name        the package in messages
#   interface   further libraries that its users link
#   sources     its sources in src/
#   libraries   the libraries that these sources link
#   options     compile options of these sources and of its users
set(pdp_launch_package OpenSSL 1.1.1)
set(pdp_launch_target OpenSSL::Crypto)
set(pdp_launch_name "OpenSSL 1.1.1 or newer (libssl-dev)")
set(pdp_launch_interface ${CMAKE_DL_LIBS})
set(pdp_launch_sources launch.cpp)
set(pdp_launch_libraries pdp::pdp OpenSSL::Crypto ${CMAKE_DL_LIBS})

set(pdp_shm_needs launch)
set(pdp_shm_sources shm.cpp)
set(pdp_shm_libraries pdp::launch)

set(pdp_tcp_needs launch)
set(pdp_tcp_package Asio 1.22 MODULE)
set(pdp_tcp_target Asio::Asio)
set(pdp_tcp_name "standalone Asio 1.22 or newer (libasio-dev)")
set(pdp_tcp_sources tcp.cpp)
set(pdp_tcp_libraries pdp::launch Asio::Asio)

set(pdp_hierarchical_needs launch shm tcp)
set(pdp_hierarchical_sources hierarchical.cpp)
set(pdp_hierarchical_libraries pdp::shm pdp::tcp)

set(pdp_safetensors_package nlohmann_json 3.10)
set(pdp_safetensors_target nlohmann_json::nlohmann_json)
set(pdp_safetensors_name "JSON for Modern C++ (nlohmann-json3-dev)")
set(pdp_safetensors_sources safetensors.cpp)
set(pdp_safetensors_libraries pdp::pdp nlohmann_json::nlohmann_json)

set(pdp_csv_package LibCsv 3.0 MODULE)
set(pdp_csv_target LibCsv::LibCsv)
set(pdp_csv_name "libcsv 3.0 or newer (libcsv-dev)")
set(pdp_csv_sources csv.cpp)
set(pdp_csv_libraries pdp::pdp LibCsv::LibCsv)

set(pdp_npz_package LibZip 1.7 MODULE)
set(pdp_npz_target LibZip::LibZip)
set(pdp_npz_name "libzip 1.7 or newer (libzip-dev)")
set(pdp_npz_sources npz.cpp)
set(pdp_npz_libraries pdp::pdp LibZip::LibZip)

set(pdp_mpi_package MPI 3.0 COMPONENTS CXX)
set(pdp_mpi_target MPI::MPI_CXX)
set(pdp_mpi_name "an MPI library (libopenmpi-dev or libmpich-dev)")

set(pdp_gloo_needs launch)
set(pdp_gloo_package Gloo CONFIG)
set(pdp_gloo_target gloo)
set(pdp_gloo_name "Gloo (libgloo-dev)")
set(pdp_gloo_sources gloo.cpp)
set(pdp_gloo_libraries pdp::launch gloo)

set(pdp_nccl_needs launch)
set(pdp_nccl_package NCCL 2.27 MODULE)
set(pdp_nccl_target NCCL::NCCL)
set(pdp_nccl_name "the CUDA toolkit and NCCL 2.27 or newer")
set(pdp_nccl_sources nccl.cpp)
set(pdp_nccl_libraries pdp::launch NCCL::NCCL)

set(pdp_cuda_package CUDAToolkit 12)
set(pdp_cuda_target CUDA::cudart)
set(pdp_cuda_other_target CUDA::cublasLt)  # loaded when a program first uses a GPU: see cuda/detail/cublas.hpp
set(pdp_cuda_name "the CUDA toolkit 12 or newer")
set(pdp_cuda_sources cuda.cu cuda_thread.cpp)
set(pdp_cuda_libraries pdp::pdp CUDA::cudart ${CMAKE_DL_LIBS})

set(pdp_onednn_package oneDNN 2.0 MODULE)
set(pdp_onednn_target oneDNN::oneDNN)
set(pdp_onednn_name "oneDNN 2.0 or newer (libdnnl-dev)")
set(pdp_onednn_interface ${CMAKE_DL_LIBS})
set(pdp_onednn_sources onednn.cpp)
set(pdp_onednn_libraries pdp::pdp oneDNN::oneDNN ${CMAKE_DL_LIBS})

# CMake 3.25 does not know C++20 in CUDA. The disabled diagnostics report host functions that templates could call on a device, but do not.
set(pdp_cuda_options "$<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-std=c++20;--expt-relaxed-constexpr;-diag-suppress=20012,20014,20011,554>")

# pdp_link_if_needed(<library file> <out>): sets <out> to an item of target_link_libraries that links the library only into programs that use
# it. CMake passes such an item unquoted to the shell and the linker. So a path with other characters than these is linked in any case.
function(pdp_link_if_needed library out)
  if(library MATCHES "^[-A-Za-z0-9_./+@%:=]+$")
    set(library "-Wl,--push-state,--as-needed,${library},--pop-state")
  endif()
  set(${out} "${library}" PARENT_SCOPE)
endfunction()

# pdp_find(<component> <out>): finds the package of a component. Sets <out> to its name in messages if it is missing, else to "".
macro(pdp_find component out)
  set(${out} "")
  if(pdp_${component}_package)
    if(NOT DEFINED MPI_CXX_SKIP_MPICXX AND "${component}" STREQUAL "mpi")
      set(MPI_CXX_SKIP_MPICXX TRUE)  # pdp uses MPI's C functions
      find_package(${pdp_mpi_package} QUIET)
      unset(MPI_CXX_SKIP_MPICXX)
    else()
      find_package(${pdp_${component}_package} QUIET)
    endif()
    # FindMPI defines its target even if it finds no library.
    if(NOT TARGET ${pdp_${component}_target} OR ("${component}" STREQUAL "mpi" AND NOT MPI_CXX_FOUND) OR (pdp_${component}_other_target AND NOT TARGET "${pdp_${component}_other_target}"))
      set(${out} "${pdp_${component}_name}")
    endif()
  endif()
endmacro()

# pdp_check_platform(<out>): sets <out> to a sentence if pdp cannot run on the target system or be compiled by the compiler, else to "".
# Headers check the same (core/requirements.hpp), for programs that are built without CMake.
function(pdp_check_platform out)
  set(reason "")
  if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    set(reason "pdp runs on Linux (x86-64 and aarch64); this build is for ${CMAKE_SYSTEM_NAME}. On macOS or Windows, use a Linux container or virtual machine, such as WSL.")
  elseif(CMAKE_SIZEOF_VOID_P AND NOT CMAKE_SIZEOF_VOID_P EQUAL 8)
    math(EXPR bits "8 * ${CMAKE_SIZEOF_VOID_P}")
    set(reason "pdp needs a 64-bit processor; this build is for ${bits} bits. Compile for x86-64 or aarch64, without -m32 and -mx32.")
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(reason "pdp needs g++ 12 or newer; ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_VERSION}. Name another by CXX=g++-12, in a new build folder.")
  elseif(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 16)
    set(reason "pdp needs clang 16 or newer; ${CMAKE_CXX_COMPILER} is ${CMAKE_CXX_COMPILER_VERSION}. Name another by CXX=clang++-16, in a new build folder.")
  endif()
  set(${out} "${reason}" PARENT_SCOPE)
endfunction()

# Warns if neither a build type nor a -O flag is set, so that the project is compiled without optimisation.
function(pdp_check_build_type)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND NOT CMAKE_CXX_FLAGS MATCHES "(^| )-O")
    message(WARNING "pdp: CMAKE_BUILD_TYPE is not set, so programs are compiled without optimisation and train about 70 times slower. Say -D CMAKE_BUILD_TYPE=Release.")
  endif()
endfunction()

# pdp_compile(<component> <source dir> <out>): adds the static library pdp_<component>_compiled and sets <out> to the item that programs link.
# The library gets the compile options of the calling directory. It is compiled only if a program links it.
function(pdp_compile component source_dir out)
  set(library pdp_${component}_compiled)
  if(NOT TARGET ${library})  # another directory of the project may have found pdp before
    list(TRANSFORM pdp_${component}_sources PREPEND "${source_dir}/" OUTPUT_VARIABLE sources)
    add_library(${library} STATIC EXCLUDE_FROM_ALL ${sources})
    target_link_libraries(${library} PRIVATE ${pdp_${component}_libraries})
    target_compile_options(${library} PRIVATE ${pdp_${component}_options})
    if(component STREQUAL "core")  # cannot link pdp::pdp, which links it
      target_include_directories(${library} PRIVATE "$<TARGET_PROPERTY:pdp::pdp,INTERFACE_INCLUDE_DIRECTORIES>")
      target_compile_features(${library} PRIVATE cxx_std_20)
      # Checkpoints need these headers. Without them, saving and loading one is an error that says so. The packages are not loaded, as the
      # project around pdp does not need them.
      find_path(PDP_JSON_INCLUDE_DIR nlohmann/json.hpp)
      find_path(PDP_XXHASH_INCLUDE_DIR xxhash.h)
      mark_as_advanced(PDP_JSON_INCLUDE_DIR PDP_XXHASH_INCLUDE_DIR)
      foreach(folder IN ITEMS "${PDP_JSON_INCLUDE_DIR}" "${PDP_XXHASH_INCLUDE_DIR}")
        if(folder)
          target_include_directories(${library} SYSTEM PRIVATE "${folder}")
        endif()
      endforeach()
    endif()
    if(component STREQUAL "cuda")
      target_include_directories(${library} SYSTEM PRIVATE "$<TARGET_PROPERTY:CUDA::cublasLt,INTERFACE_INCLUDE_DIRECTORIES>")
      # Programs search the folder of cuBLASLt. CMake makes them search that of the runtime, which is usually the same.
      get_filename_component(folder "${CUDA_cublasLt_LIBRARY}" DIRECTORY)
      get_filename_component(folder_of_runtime "${CUDA_cudart_LIBRARY}" DIRECTORY)
      if(folder AND NOT folder STREQUAL folder_of_runtime)
        target_link_options(${library} INTERFACE "LINKER:-rpath,${folder}")
      endif()
    endif()
    # Shared libraries may link it, too.
    set_target_properties(${library} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  if(component STREQUAL "onednn")  # only weak references name it, and linkers extract nothing from an archive for these
    set(library "$<LINK_LIBRARY:WHOLE_ARCHIVE,${library}>")
  endif()
  set(${out} "${library}" PARENT_SCOPE)
endfunction()

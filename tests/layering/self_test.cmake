# Plants each kind of fault in a small tree of headers under WORK_DIR and checks that check.cmake reports it.
cmake_minimum_required(VERSION 3.25)
cmake_path(ABSOLUTE_PATH WORK_DIR NORMALIZE)

function(header path text)
  file(WRITE "${WORK_DIR}/${path}" "#pragma once\n${text}\n")
endfunction()

# Writes a tree without faults, and its lists. Besides ordinary includes it has spaces, a comment, and includes of optional components.
function(sound_tree)
  file(REMOVE_RECURSE "${WORK_DIR}")
  header(pdp/core/version.hpp "")
  header(pdp/core/one_version.hpp "#include <pdp/core/version.hpp>")
  header(pdp/core/requirements.hpp "#include <see the error above>\n#include <pdp/core/one_version.hpp>")
  header(pdp/core/shape.hpp "#include <cstddef>\n#include <pdp/core/requirements.hpp>\n// #include <pdp/train/trainer.hpp> is only talked about")
  header(pdp/comm/communicator.hpp "#include <pdp/core/shape.hpp>")
  header(pdp/comm/tcp.hpp "#include <asio.hpp>\n#include <pdp/comm/communicator.hpp>")
  header(pdp/comm/tcp/frame.hpp "#include <pdp/core/shape.hpp>")
  header(pdp/comm/shm.hpp "#include <pdp/comm/communicator.hpp>\n#include <pdp/comm/shm/source.hpp>\n#include <pdp/launch/start/source.hpp>")
  header(pdp/comm/shm/source.hpp "#include <pdp/comm/shm.hpp>")
  header(pdp/launch/start/source.hpp "#include <openssl/hmac.h>\n#include <pdp/core/shape.hpp>")
  header(pdp/comm/source.hpp "#include <pdp/comm/detail.hpp>")
  header(pdp/comm.hpp "#include <pdp/comm/source.hpp>")
  header(pdp/comm/detail.hpp "#include <pdp/core/shape.hpp>")
  header(pdp/data/safetensors.hpp "#  include <nlohmann/json.hpp>\n #include <pdp/core/shape.hpp>")
  header(pdp/train/trainer.hpp "#include <pdp/comm/communicator.hpp>\n#if __has_include(<nlohmann/json.hpp>)\n#include <nlohmann/json.hpp>\n#endif")
  header(pdp/pdp.hpp "#include <pdp/train/trainer.hpp>")
  execute_process(COMMAND "${CMAKE_COMMAND}" -D "INCLUDE_DIR=${WORK_DIR}" -D "LISTS=${WORK_DIR}/lists.cmake" -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/lists.cmake"
                  COMMAND_ERROR_IS_FATAL ANY)
endfunction()

function(check outcome text)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -D "INCLUDE_DIR=${WORK_DIR}" -D "LISTS=${WORK_DIR}/lists.cmake" -P "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check.cmake"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(result EQUAL 0)
    set(found passes)
  else()
    set(found fails)
  endif()
  # CMake wraps long messages.
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "${text}" at)
  if(NOT found STREQUAL outcome OR at EQUAL -1)
    message(FATAL_ERROR "layering: expected that it ${outcome} with '${text}'; it ${found} with:\n${output}")
  endif()
  sound_tree()
endfunction()

sound_tree()
check(passes "16 headers include only what their rooms may")

header(pdp/core/shape.hpp "#include <pdp/comm/communicator.hpp>")
check(fails "pdp/core/shape.hpp includes <pdp/comm/communicator.hpp>: core/ may include itself [], not comm/")

header(pdp/core/shape.hpp "#include <cstddef>\n#include <pdp/core/version.hpp>")
check(fails "pdp/core/shape.hpp includes no other header of pdp: it must include <pdp/core/requirements.hpp>")

header(pdp/nn/linear.hpp "\t#\tinclude <pdp/comm/communicator.hpp>")
check(fails "pdp/nn/linear.hpp includes <pdp/comm/communicator.hpp>: nn/ may include itself [core], not comm/")

header(pdp/comm/communicator.hpp "#include <pdp/pdp.hpp>")
check(fails "pdp/comm/communicator.hpp includes <pdp/pdp.hpp>: a room includes rooms")

header(pdp/launch/run.hpp "#include <pdp/core/shape.hpp>")
header(pdp/comm/communicator.hpp "#include <pdp/launch/run.hpp>")
header(pdp/checkpoint/state.hpp "#include <pdp/comm/communicator.hpp>")
header(pdp/inference/predictor.hpp "#include <pdp/checkpoint/state.hpp>")
check(fails "pdp/inference/predictor.hpp reaches <pdp/launch/run.hpp>: a program that only predicts needs nothing of launch/")

header(pdp/comm/self.hpp "#include \"communicator.hpp\"")
check(fails "pdp/comm/self.hpp includes \"communicator.hpp\": say <pdp/...>")

header(pdp/comm/self.hpp "#include <pdp/comm/nothing.hpp>")
check(fails "pdp/comm/self.hpp includes <pdp/comm/nothing.hpp>, which does not exist")

header(pdp/train/trainer.hpp "#include <pdp/comm/communicator.hpp>\n#include <pdp/comm/source.hpp>")
check(fails "pdp/train/trainer.hpp includes <pdp/comm/source.hpp>: only a backend's header includes its definitions")

header(pdp/comm/tcp/frame.hpp "#include <pdp/launch/start/source.hpp>")
check(fails "pdp/comm/tcp/frame.hpp includes <pdp/launch/start/source.hpp>: only a backend's header includes its definitions")

header(pdp/comm/shm.hpp "#include <pdp/comm/shm/source.hpp>")
file(REMOVE "${WORK_DIR}/pdp/comm/shm/source.hpp")
check(fails "pdp/comm/shm.hpp includes <pdp/comm/shm/source.hpp>, which does not exist")

header(pdp/core/source/shape.hpp "#include <pdp/core/shape.hpp>")
check(fails "pdp/core/source/shape.hpp holds definitions, but no header includes it")

header(pdp/pdp.hpp "#include <pdp/train/trainer.hpp>\n#include <pdp/comm/shm.hpp>")
check(fails "pdp/pdp.hpp reaches pdp/comm/shm.hpp, whose definitions need optional components")

header(pdp/attic/old.hpp "")
check(fails "the folder attic/ is not in the table of rooms")

set(includes "")
foreach(number RANGE 30)
  header(pdp/optim/rule_${number}.hpp "")
  string(APPEND includes "#include <pdp/optim/rule_${number}.hpp>\n")
endforeach()
header(pdp/pdp.hpp "${includes}")
check(fails "pdp/pdp.hpp includes 31 headers: it names public ones only, at most 30")

header(pdp/pdp.hpp "#include <pdp/train/trainer.hpp>\n#include <pdp/comm/tcp.hpp>")
check(fails "pdp/pdp.hpp reaches pdp/comm/tcp.hpp, which needs the optional component tcp")

header(pdp/core/view.hpp "")
check(fails "pdp/core/view.hpp is not in pdp_headers of lists.cmake, where it belongs by what it includes")

header(pdp/comm/tcp/frame.hpp "#include <asio.hpp>")
check(fails "pdp/comm/tcp/frame.hpp is not in pdp_tcp_headers of lists.cmake")

header(pdp/comm/tcp/frame.hpp "#include <asio.hpp>")
check(fails "pdp/comm/tcp/frame.hpp is in pdp_headers of lists.cmake, where it does not belong by what it includes")

file(REMOVE "${WORK_DIR}/pdp/comm/tcp/frame.hpp")
check(fails "pdp/comm/tcp/frame.hpp is in pdp_headers of lists.cmake, but does not exist")

header(pdp/train/all.hpp "#include <pdp/comm/tcp.hpp>\n#include <pdp/data/safetensors.hpp>")
check(fails "pdp/train/all.hpp needs several optional components [tcp;safetensors]")

file(REMOVE "${WORK_DIR}/pdp/pdp.hpp")
check(fails "pdp/pdp.hpp, the umbrella, is missing")

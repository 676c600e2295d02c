# Runs PROGRAM with one and with two ranks. Each run must print the sum, or report why it cannot run: no driver, a driver that is too old, no GPU,
# or fewer GPUs than ranks. It must end within 60 seconds.
foreach(ranks RANGE 1 2)
  execute_process(COMMAND "${PROGRAM}" --ranks ${ranks} TIMEOUT 60 RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  math(EXPR sum "${ranks} * (${ranks} + 1) / 2")
  if(result EQUAL 0 AND output STREQUAL "${ranks} ranks on GPUs, sum ${sum}\n")
    message(STATUS "${ranks} ranks: ${output}")
  elseif(result EQUAL 1 AND output MATCHES "there is no NVIDIA driver on this machine|the NVIDIA driver of this machine is for CUDA|there is no GPU that this process may use|NCCL needs a GPU for each rank")
    message(STATUS "${ranks} ranks, refused as they should be: ${output}")
  else()
    message(FATAL_ERROR "${ranks} ranks: exit code ${result}, output:\n${output}")
  endif()
endforeach()

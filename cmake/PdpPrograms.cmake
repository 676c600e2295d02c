# Interface targets that pdp's own tests, examples and benchmarks link.

# Communicators between processes. Their libraries come with them, as tests of their parts include headers of these libraries.
if(TARGET pdp_hierarchical)
  add_library(pdp_backends INTERFACE)
  target_link_libraries(pdp_backends INTERFACE pdp_hierarchical $<TARGET_NAME_IF_EXISTS:pdp_gloo>)
endif()

# GPUs. The GPU libraries do not support sanitizers.
if(TARGET pdp_cuda AND TARGET pdp_nccl AND PDP_SANITIZE STREQUAL "none")
  add_library(pdp_gpu INTERFACE)
  target_link_libraries(pdp_gpu INTERFACE pdp_cuda pdp_nccl)
endif()

# Matrix products: by oneDNN if it was found, else by Eigen.
add_library(pdp_products INTERFACE)
if(PDP_LINK_ONEDNN AND TARGET pdp_onednn)
  target_link_libraries(pdp_products INTERFACE pdp_onednn)
endif()

# What includes what under include/pdp. Used by the build, to give every header to the target that it needs, and by
# tests/layering, which checks the rooms. Reads `#include` lines only; knows nothing of #if.

# pdp_scan_includes(<include dir>): sets in the caller, for each header H (a path such as pdp/core/shape.hpp),
#   pdp_all_headers   every header, sorted
#   includes_H        what H includes itself of pdp
#   quoted_H          what H includes between quotes
#   needs_H           the optional components (tcp, safetensors) whose library H includes itself
macro(pdp_scan_includes include_dir)
  file(GLOB_RECURSE pdp_all_headers RELATIVE "${include_dir}" "${include_dir}/pdp/*.hpp")
  list(SORT pdp_all_headers)
  foreach(header IN LISTS pdp_all_headers)
    set(includes_${header} "")
    set(quoted_${header} "")
    set(needs_${header} "")
    file(STRINGS "${include_dir}/${header}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
    foreach(line IN LISTS lines)
      if(line MATCHES "include[ \t]*<(pdp/[^>]+)>")
        list(APPEND includes_${header} "${CMAKE_MATCH_1}")
      elseif(line MATCHES "include[ \t]*<asio[./]")
        list(APPEND needs_${header} tcp)
      elseif(line MATCHES "include[ \t]*<nlohmann/")
        list(APPEND needs_${header} safetensors)
      elseif(line MATCHES "include[ \t]*\"([^\"]+)\"")
        list(APPEND quoted_${header} "${CMAKE_MATCH_1}")
      endif()
    endforeach()
    list(REMOVE_DUPLICATES needs_${header})
  endforeach()
endmacro()

# pdp_closure(<header> <out>): the header and all of pdp that it includes, however deep. After pdp_scan_includes.
macro(pdp_closure header out)
  set(${out} "${header}")
  set(queue "${header}")
  while(queue)
    list(POP_FRONT queue next)
    foreach(included IN LISTS includes_${next})
      if(NOT included IN_LIST ${out})
        list(APPEND ${out} "${included}")
        list(APPEND queue "${included}")
      endif()
    endforeach()
  endwhile()
endmacro()

# pdp_components_of(<header> <out>): the optional components that a header needs, however deep. After pdp_scan_includes.
macro(pdp_components_of header out)
  pdp_closure("${header}" reached)
  set(${out} "")
  foreach(each IN LISTS reached)
    list(APPEND ${out} ${needs_${each}})
  endforeach()
  list(REMOVE_DUPLICATES ${out})
endmacro()

# pdp_classify_headers(<include dir> <core> <tcp> <safetensors>): splits the headers, as absolute paths. One that needs
# several components counts as tcp's; tests/layering refuses it.
function(pdp_classify_headers include_dir core tcp safetensors)
  pdp_scan_includes("${include_dir}")
  set(list_ "")
  set(list_tcp "")
  set(list_safetensors "")
  foreach(candidate IN LISTS pdp_all_headers)
    pdp_components_of("${candidate}" components)
    if("tcp" IN_LIST components)
      set(components tcp)
    endif()
    list(APPEND list_${components} "${include_dir}/${candidate}")
  endforeach()
  set(${core} ${list_} PARENT_SCOPE)
  set(${tcp} ${list_tcp} PARENT_SCOPE)
  set(${safetensors} ${list_safetensors} PARENT_SCOPE)
endfunction()

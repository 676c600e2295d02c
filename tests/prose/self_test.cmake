# Runs CHECK on trees with one fault each, which it must find, and on trees without faults:
#   cmake -D CHECK=.../check -D WORK_DIR=... -P self_test.cmake
cmake_minimum_required(VERSION 3.25)

string(REPEAT "word " 41 long_sentence)
string(REPEAT "One two three four. " 31 long_paragraph)
string(REPEAT "/// Five words in a line.\n" 20 hundred_words)
string(REPEAT "${hundred_words}///\n" 30 many_words)  # 3,000

# checks(<code> <text> <header> <page>): runs the check on this header and page. The exit code must equal <code>, the output contain <text>.
function(checks code text header page)
  file(REMOVE_RECURSE "${WORK_DIR}")
  file(WRITE "${WORK_DIR}/include/pdp/header.hpp" "${header}")
  file(WRITE "${WORK_DIR}/README.md" "A page.\n")
  file(WRITE "${WORK_DIR}/docs/page.md" "${page}")
  execute_process(COMMAND "${CHECK}" "${WORK_DIR}" RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(FIND "${said}" "${text}" found)
  if(NOT result EQUAL code OR found EQUAL -1)
    message(FATAL_ERROR "expected the exit code ${code} and '${text}' for the header\n${header}\nand the page\n${page}\nfound ${result} and:\n${said}")
  endif()
endfunction()

set(page "A page of few words.\n")
checks(0 "comments: 2 words, 0 where" "/// Two words.\nint f();\n" "${page}")
checks(0 "comments: 3003 words, 3 where" "${many_words}/// where where\nint where();  // where\n" "${page}")
checks(1 "header.hpp:1: where" "/// Returns 0 where there is none.\n" "${page}")
checks(1 "header.hpp:2: where" "int f();\nint g();  ///< 0 where there is none\n" "${page}")
checks(1 "header.hpp:1: starts with What" "// What a rank has.\n" "${page}")
checks(1 "header.hpp:3: nobody" "/// One.\n///\n/// Nobody\n/// waits.\n" "${page}")
checks(1 "header.hpp:1: sentence of 41 words" "/// ${long_sentence}\n" "${page}")
checks(0 "0 long sentences" "const char* address = \"http://where whoever\";\n" "${page}")
checks(1 "page.md:2: where" "" "# Where it is a heading\nIt says where.\n")
checks(1 "page.md:1: sentence of 41 words" "" "${long_sentence}\n")
checks(1 "page.md:3: paragraph of 124 words" "" "Short.\n\n${long_paragraph}\n")
checks(1 "page.md:3: where" "" "| a | b |\n|---|---|\n| one | where |\n")
checks(0 "pages: 7 words, 0 where" "" "Code counts as `where` nothing.\n```\nwhere\n```\n")
file(REMOVE_RECURSE "${WORK_DIR}")

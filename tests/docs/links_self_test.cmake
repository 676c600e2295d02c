# Runs tools/site/check_links.py on sites with one fault each, which it must find, and on a site without faults:
#   cmake -D PYTHON=python3 -D CHECK=.../check_links.py -D WORK_DIR=... -P links_self_test.cmake
cmake_minimum_required(VERSION 3.25)

# checks(<code> <text> <html>): runs the check on a site with this page. The exit code must equal <code>, the output contain <text>.
function(checks code text html)
  file(REMOVE_RECURSE "${WORK_DIR}")
  file(WRITE "${WORK_DIR}/page.html" "${html}")
  file(WRITE "${WORK_DIR}/api/index.html" "<h1 id='top'>Top</h1><a name='old'></a><a href='../page.html'>page</a>")
  execute_process(COMMAND "${PYTHON}" "${CHECK}" "${WORK_DIR}" RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  string(FIND "${said}" "${text}" found)
  if(NOT result EQUAL code OR found EQUAL -1)
    message(FATAL_ERROR "expected the exit code ${code} and '${text}' for the page\n${html}\nfound ${result} and:\n${said}")
  endif()
endfunction()

checks(0 "2 pages, 1 links, 0 faults" "<p>No link.</p>")
checks(0 "0 faults" "<a href='api/index.html#top'>1</a><a href='api/#old'>2</a><a href='#here' id='here'>3</a><a href='/page.html'>4</a>")
checks(0 "0 faults" "<a href='https://example.org/a#b'>other site</a><img src='data:image/png;base64,'><a href='mailto:a@example.org'>mail</a>")
checks(1 "page.html: there is no other.html" "<a href='other.html'>1</a>")
checks(1 "page.html: there is no api/none/" "<a href='api/none/'>1</a>")
checks(1 "page.html: there is no anchor #here" "<a href='#here'>1</a>")
checks(1 "page.html: there is no anchor api/index.html#none" "<a href='api/index.html#none'>1</a>")
checks(1 "page.html: there is no style.css" "<link rel='stylesheet' href='style.css'>")
checks(1 "page.html: loads from elsewhere: https://example.org/a.js" "<script src='https://example.org/a.js'></script>")
checks(1 "page.html: loads from elsewhere: //example.org/a.png" "<img src='//example.org/a.png'>")
file(REMOVE_RECURSE "${WORK_DIR}")

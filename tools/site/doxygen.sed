# Doxygen reads the headers through this filter.
# A comment behind a member begins with // in the headers. It is the comment of the member.
s|^( *[A-Za-z].*;) +// |\1  ///< |
# A backslash in a comment is no command.
/^ *\/\/\//s|\\|\\\\|g

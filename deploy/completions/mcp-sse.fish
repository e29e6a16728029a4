# Completion of sse-server and docsearch for fish. It asks the program itself.
function __mcp_sse
    set -l words (commandline -opc)
    contains -- -- $words; and return # what follows is another program's
    set -l help ($words[1] --help-all 2>/dev/null; or $words[1] --help 2>/dev/null)
    set -l commands (printf '%s\n' $help | sed -nE '/^Commands:/,/^$/s/^  ([a-z-]+)( [<[][^ ]*)*  +(.*)/\1\t\3/p')
    for word in $words[2..-1]
        if string match -q -- $word\t'*' $commands
            set help ($words[1] $word --help-all 2>/dev/null; or $words[1] $word --help 2>/dev/null)
            set commands
            break
        end
    end
    printf '%s\n' $commands
    printf '%s\n' $help | sed -nE -e 's/^  (    |-[A-Za-z], )?(--[][a-z-]+)([^ ]| [^ ])*(  +(.*))?$/\2\t\5/' -e '/^--/!d' \
        -e '/\[no-\]/{s/\[no-\]/no-/p;s/no-//;}' -e p
end
complete -c sse-server -a '(__mcp_sse)'
complete -c docsearch -a '(__mcp_sse)'

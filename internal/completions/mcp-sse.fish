# Completion of sse-server and docsearch for fish. It asks the program itself.
function __mcp_sse
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l before $words[-1]
    contains -- -- $words; and return # what follows is another program's
    set -l help ($words[1] --help-all 2>/dev/null; or $words[1] --help 2>/dev/null)
    set -l commands (printf '%s\n' $help | sed -nE '/^Commands:/,/^$/s/^  ([a-z-]+)( [<[][^ ]*)*  +(.*)/\1\t\3/p')
    set -l command
    for one in $words[2..-1]
        if string match -q -- $one\t'*' $commands
            set help ($words[1] $one --help-all 2>/dev/null; or $words[1] $one --help 2>/dev/null)
            set commands
            set command $one
            break
        end
    end
    if string match -q -- '--*=*' $word
        set before (string replace -r '=.*' '' -- $word)
        for value in ($words[1] completion --values=$before 2>/dev/null)
            echo $before=$value
        end
        return
    end
    if string match -q -- '-*' $before; or test "$before" = "$command"
        set -l values ($words[1] completion --values=$before 2>/dev/null)
        if set -q values[1]
            printf '%s\n' $values
            string match -q -- '-*' $before; and return
        end
    end
    printf '%s\n' $commands
    printf '%s\n' $help | sed -nE -e 's/^  (    |-[A-Za-z], )?(--[][a-z-]+)([^ ]| [^ ])*(  +(.*))?$/\2\t\5/' -e '/^--/!d' \
        -e '/\[no-\]/{s/\[no-\]/no-/p;s/no-//;}' -e p
end
complete -c sse-server -a '(__mcp_sse)'
complete -c docsearch -a '(__mcp_sse)'

# Completion of sse-server and docsearch for bash. It asks the program itself.
_mcp_sse() {
	local help command='' commands word values='' before=${COMP_WORDS[COMP_CWORD-1]}
	[[ $before != = ]] || before=${COMP_WORDS[COMP_CWORD-2]} # of --flag=value, which are three words here
	help=$("$1" --help-all 2>/dev/null || "$1" --help 2>/dev/null)
	commands=$(sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\) .*/\1/p' <<<"$help")
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		[[ $word != -- ]] || return 0 # what follows is another program's
		[[ -n $command ]] || command=$(grep -xF -e "$word" <<<"$commands")
	done
	[[ -z $command ]] || help=$("$1" "$command" --help-all 2>/dev/null || "$1" "$command" --help 2>/dev/null) commands=
	case $2 in
	-*) mapfile -t COMPREPLY < <(compgen -W "$(sed -nE -e 's/^  (    |-[A-Za-z], )?(--[][a-z-]+).*/\2/' -e '/^--/!d' \
		-e '/\[no-\]/{s/\[no-\]/no-/p;s/no-//;}' -e p <<<"$help")" -- "$2") ;;
	*)
		[[ $before != -* && $before != "$command" ]] || values=$("$1" completion --values="$before" 2>/dev/null)
		mapfile -t COMPREPLY < <(compgen -W "${values:-$commands}" -- "${2#=}")
		;;
	esac
}
complete -o default -F _mcp_sse sse-server docsearch

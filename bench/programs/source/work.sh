# One portion of work for each line of input, answered by what came of it.
fail() { if (($1 == 0)); then return 3; fi; fail $(($1 - 1)); }

portion() {
	local -A count=()
	local -a words=()
	local seed=42 i w sum=0 changed
	for ((i = 0; i < 400; i++)); do
		seed=$(((seed * 1103515245 + 12345) % 2147483648))
		w=w$((seed / 65536 % 97))
		words+=("$w")
		count[$w]=$((${count[$w]:-0} + 1))
	done
	for w in "${words[@]}"; do
		changed=${w//w/x}
		case $changed in
		x1*) sum=$(((sum * 31 + ${#changed}) % 1000003)) ;;
		*[02468]) sum=$(((sum * 31 + 10#${changed#x}) % 1000003)) ;;
		*) [[ $changed =~ ^x([0-9]+)$ ]] && sum=$(((sum + BASH_REMATCH[1]) % 1000003)) ;;
		esac
	done
	fail 30
	echo "$sum $? ${#count[@]} $(printf '%s\n' "${words[@]}" | sort | uniq -c | sort -rn | head -3 | tr -s ' \n' ',')"
	local here=$(< <(echo inside; (exit 7); echo $?))
	trap 'sum=9' USR1; kill -USR1 $BASHPID; trap - USR1
	printf '%q %s %05d\n' "$here" "${words[*]:3:4}" "$sum"
}

while read -r line; do
	portion
	echo '~end'
done

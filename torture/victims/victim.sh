# A bash script that has the same result in every round: recursion, arrays,
# patterns, a subshell, a here-document, a trap of an error.
fib() {
	local n=$1 a
	if ((n < 2)); then
		REPLY=$n
		return
	fi
	fib $((n - 1))
	a=$REPLY
	fib $((n - 2))
	REPLY=$((a + REPLY))
}

words() {
	local -A seen=()
	local word text=
	while read -r word _; do
		[[ $word =~ ^([a-z]+)-([0-9]+)$ ]] || continue
		((seen[${BASH_REMATCH[1]}] += BASH_REMATCH[2]))
	done <<-END
		oak-12 the first
		elm-7
		oak-30
		--
		ash-${1}1
		elm-5
	END
	for word in oak elm ash; do
		printf -v text '%s%s:%04x;' "$text" "${word^^}" "${seen[$word]}"
	done
	REPLY=$text
}

sum() {
	local LC_ALL=C i s=0 c
	for ((i = 0; i < ${#1}; i++)); do
		printf -v c %d "'${1:i:1}"
		((s = (s * 131 + c) % 1000000007))
	done
	REPLY=$s
}

fail() { return "$1"; }

round() {
	local text i list=()
	fib 9
	text=$REPLY
	words 3
	text+=$REPLY
	for i in {1..20}; do
		list=("$((i * i % 17))" "${list[@]}")
	done
	text+="${list[*]:2:9}${list[@]/#1/one}"
	text+=$(for i in a b c; do echo -n "$i${#text}"; done)
	fail 3 || text+=$?
	case $text in
	*[[:upper:]]*x*) text+=case ;;
	esac
	sum "${text//o/0}"
}

while read -r _; do
	round
	echo "$REPLY"
done

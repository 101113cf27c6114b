package mir

import "cmp"

// compareIDs compares ids by the numbers in them: t_2 precedes t_10.
func compareIDs(a, b string) int {
	whole := cmp.Compare(a, b)
	for a != "" && b != "" {
		var x, y string
		x, a = leadingRun(a)
		y, b = leadingRun(b)
		if isDigit(x[0]) && isDigit(y[0]) {
			if c := compareNumbers(x, y); c != 0 {
				return c
			}
			continue
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), whole)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leadingRun splits off the longest prefix of text that consists only of digits or only of
// other characters.
func leadingRun(text string) (run, rest string) {
	i := 1
	for digits := isDigit(text[0]); i < len(text) && isDigit(text[i]) == digits; {
		i++
	}
	return text[:i], text[i:]
}

// compareNumbers compares decimal numbers of any length.
func compareNumbers(x, y string) int {
	trim := func(digits string) string {
		for len(digits) > 1 && digits[0] == '0' {
			digits = digits[1:]
		}
		return digits
	}
	x, y = trim(x), trim(y)
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(x, y))
}

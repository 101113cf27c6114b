package criu

import (
	"regexp"
	"strings"
)

// errorLine matches a line in which CRIU reports an error: some lines begin with time and
// process; then follows the place in CRIU's source.
var errorLine = regexp.MustCompile(`^(?:\([0-9.]+\))?\s*(?:\d+:\s*)?Error \([^)]*\):\s*(.*)$`)

// reason returns the first error in a log, which causes the others. It ignores the error
// of raising a limit, after which CRIU continues.
func reason(log string) string {
	for _, line := range strings.Split(log, "\n") {
		if m := errorLine.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "rlimit:") {
			return strings.TrimSpace(m[1])
		}
	}
	return ""
}

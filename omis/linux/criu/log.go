package criu

import (
	"regexp"
	"strings"
)

// errorLine is what CRIU reports an error by: time and process, which only some
// lines have, and the place in its source.
var errorLine = regexp.MustCompile(`^(?:\([0-9.]+\))?\s*(?:\d+:\s*)?Error \([^)]*\):\s*(.*)$`)

// reason is the error that a log tells of: the first, of which the others follow.
// CRIU also complains of not being allowed to raise a limit, and goes on.
func reason(log string) string {
	for _, line := range strings.Split(log, "\n") {
		if m := errorLine.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "rlimit:") {
			return strings.TrimSpace(m[1])
		}
	}
	return ""
}

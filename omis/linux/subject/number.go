//go:build linux

package subject

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// lastNumber is the file with the number that the newest process or thread got. The next one gets the next free number.
const lastNumber = "/proc/sys/kernel/ns_last_pid"

// Next makes the kernel give a number to the next process or thread of the machine, unless the number is in use. The
// caller must call restore directly after that. Otherwise threads of other programs get numbers that ended threads had
// a moment ago; start times have too low a resolution to tell them apart, so that tests that run beside this one fail.
func Next(t testing.TB, number int) (restore func()) {
	t.Helper()
	before, err := os.ReadFile(lastNumber)
	if err == nil {
		err = os.WriteFile(lastNumber, []byte(strconv.Itoa(number-1)), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.WriteFile(lastNumber, []byte(strings.TrimSpace(string(before))), 0); err != nil {
			t.Error(err)
		}
	}
}

//go:build linux

package subject

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// lastNumber is the file with the number that a process or thread got last. The kernel gives the next one that is free.
const lastNumber = "/proc/sys/kernel/ns_last_pid"

// Next has the next process or thread of the machine get a number, unless the number is in use. Call the returned
// function at once after that: other programs would get numbers for the second time within the resolution of start
// times, and tests that run beside this one take their threads for one.
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

//go:build linux && amd64

package shares

import (
	"errors"
	"testing"

	"mirador/omis/program"
)

// TestReason checks that refusals of different functions for the same reason become
// equal.
func TestReason(t *testing.T) {
	for refusal, want := range map[string]string{
		"no code can be put at 0x401000: execution leaves the function within its 5 bytes": "execution leaves the function within its 5 bytes",
		"no code can be put at 0x1: the instruction at 0x40 is not known, nor is 0x41":     "the instruction at … is not known, nor is …",
		"no code can be put at 0x1: there may be too little room: no code: 0x40 changes":   "there may be too little room: no code: … changes",
	} {
		if got := reason(&program.Refusal{Why: refusal}); got != want {
			t.Errorf("%s: %s", refusal, got)
		}
	}
	if got := reason(errors.New("other")); got != "other" {
		t.Error(got)
	}
}

// TestMappedPath checks that a library is found by the file name that its symbolic link
// leads to.
func TestMappedPath(t *testing.T) {
	maps := "7f00-7f01 r--p 00000000 08:01 5 /usr/bin/nginx\n7f01-7f02 r-xp 00001000 08:01 5 /usr/bin/nginx\n7f02-7f03 r-xp 00000000 00:00 0 [vdso]\n"
	if got := mappedPath(maps, "/nginx"); got != "/usr/bin/nginx" {
		t.Error(got)
	}
	if got := mappedPath(maps, "/redis-check-rdb"); got != "" {
		t.Error(got)
	}
}

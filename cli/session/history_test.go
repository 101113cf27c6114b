package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func entries(h *history) string { return strings.Join(h.lines, "|") }

func TestHistoryIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state", "mirador", "omis_history")
	h := openHistory(file)
	for _, line := range []string{": version()", ": version()", "", " secret", "exit"} {
		h.Add(line)
	}
	if entries(h) != ": version()|exit" || h.err != nil || h.Len() != 2 || h.At(0) != "exit" {
		t.Errorf("%s, %v", entries(h), h.err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err != nil || dir.Mode().Perm() != 0o700 {
		t.Error(dir, err)
	}
	other := openHistory(file)
	other.Add("of another session")
	h.Add("of this one")
	if got := entries(openHistory(file)); got != ": version()|exit|of another session|of this one" {
		t.Error(got)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	h := openHistory(file)
	for i := range 2*mostHistory + 1 {
		h.Add(fmt.Sprint("line ", i))
	}
	h.Add(strings.Repeat("x", longestHistory+1))
	if h.Len() != mostHistory || h.At(0) != fmt.Sprint("line ", 2*mostHistory) {
		t.Error(h.Len(), h.At(0))
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if h = openHistory(file); h.Len() != mostHistory || h.At(0) != fmt.Sprint("line ", 2*mostHistory) || h.err != nil {
		t.Error(h.Len(), h.At(0), h.err)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n") != mostHistory {
		t.Errorf("%d lines stay in the file, %v", strings.Count(string(text), "\n"), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

func TestHistoryThatCannotBeKept(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("MIRADOR_HISTORY", "")
	if file := DefaultHistory(); file != noHistory {
		t.Error(file)
	}
	dir := t.TempDir()
	for _, file := range []string{noHistory, dir} {
		h := openHistory(file)
		h.Add("a")
		if entries(h) != "a" || (h.err != nil) != (file == dir) {
			t.Errorf("%s: %s, %v", file, entries(h), h.err)
		}
	}
	t.Setenv("XDG_STATE_HOME", dir)
	if file := DefaultHistory(); file != filepath.Join(dir, "mirador", "omis_history") {
		t.Error(file)
	}
}

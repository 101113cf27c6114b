package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// damaged writes a journal and changes a byte in each line that contains one of the words.
func damaged(t *testing.T, dir string, words ...string) []byte {
	t.Helper()
	j := open(t, dir)
	if err := errors.Join(j.Put("app/one", "1"), j.Put("probe/one", "2"), j.Put("probe/two", "3"), j.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(j.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for _, line := range lines {
		for _, word := range words {
			if i := bytes.Index(line, []byte(word)); i >= 0 {
				line[len(line)-3] ^= 0x10
			}
		}
	}
	text = bytes.Join(lines, nil)
	if err := os.WriteFile(j.path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}

// TestDamageIsReportedAndCopied checks that a damaged journal is copied, its damaged keys are
// reported, and the other records are read.
func TestDamageIsReportedAndCopied(t *testing.T) {
	dir := t.TempDir()
	text := damaged(t, dir, "probe/one")
	j := open(t, dir)
	if got := j.Keys(""); !slices.Equal(got, []string{"app/one", bootKey, idKey, "probe/two"}) {
		t.Errorf("keys %q", got)
	}
	d := j.Damage()
	if d.Cut || !slices.Equal(d.Keys(), []string{"probe/one"}) {
		t.Errorf("%+v names %q", d, d.Keys())
	}
	if copied, err := os.ReadFile(d.Copy); err != nil || !bytes.Equal(copied, text) {
		t.Errorf("the copy holds %q, %v", copied, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if d := open(t, dir).Damage(); d.Lines != nil || d.Copy != "" {
		t.Errorf("damage is reported twice: %+v", d)
	}
}

// TestDamagedRecordOfTheBoot checks that the other records are read if the record of the boot
// is damaged.
func TestDamagedRecordOfTheBoot(t *testing.T) {
	dir := t.TempDir()
	damaged(t, dir, `"boot"`)
	j := open(t, dir)
	if got := j.Keys(""); !slices.Equal(got, []string{"app/one", bootKey, idKey, "probe/one", "probe/two"}) {
		t.Errorf("keys %q", got)
	}
	if got := j.Damage().Keys(); !slices.Equal(got, []string{bootKey}) {
		t.Errorf("damaged keys %q", got)
	}
}

// TestFewCopiesAreKept checks that the newest copies are kept.
func TestFewCopiesAreKept(t *testing.T) {
	dir := t.TempDir()
	var last []byte
	for range mostCopies + 2 {
		last = damaged(t, dir, "probe/two")
		if err := open(t, dir).Close(); err != nil {
			t.Fatal(err)
		}
	}
	copies, err := filepath.Glob(filepath.Join(dir, "*damaged*"))
	if err != nil || len(copies) != mostCopies {
		t.Errorf("%q, %v", copies, err)
	}
	newest, err := os.ReadFile(filepath.Join(dir, File+".damaged-1"))
	if err != nil || !bytes.Equal(newest, last) {
		t.Errorf("the newest copy holds %q, %v", newest, err)
	}
}

// TestInvalidJournal checks that a journal without any valid line can be opened.
func TestInvalidJournal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, File), []byte(strings.Repeat("\x00\xff rubbish\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	j := open(t, dir)
	if got := j.Damage().Keys(); !slices.Equal(got, []string{"?"}) || len(j.Damage().Lines) != 1000 {
		t.Errorf("%d lines, %q", len(j.Damage().Lines), got)
	}
}

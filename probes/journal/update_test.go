package journal

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestUpdate checks that values that are written together are found after every way in which
// a SIGKILL may cut the write short: a value is removed only if those written with it are there.
func TestUpdate(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Update(map[string]any{"a/1": 1, "c": json.RawMessage(`{"text":"<&>"}`)}); err != nil {
		t.Fatal(err)
	}
	before := j.size
	if err := j.Update(map[string]any{"a/1": nil, "a/2": 2, "never": nil}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, File))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `{"text":"<&>"}`) || strings.Contains(string(text), "never") {
		t.Errorf("the journal is\n%s", text)
	}
	for end := int(before); end <= len(text); end++ {
		if err := os.WriteFile(filepath.Join(dir, File), text[:end], 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		found := fmt.Sprint(j.Keys("a/"))
		if found != "[a/1]" && found != "[a/1 a/2]" && found != "[a/2]" {
			t.Errorf("after %d of %d bytes the keys are %s", end, len(text), found)
		}
		if end == len(text) && found != "[a/2]" {
			t.Errorf("at the end the keys are %s", found)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

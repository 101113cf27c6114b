//go:build linux && amd64

package kernel_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"mirador/omis/host/proc"
	"mirador/omis/host/uprobe"
	"mirador/omis/linux/subject"
	"mirador/omis/place/kernel"
)

// TestUnsuited compares with the kernel which instructions have no uprobe.
func TestUnsuited(t *testing.T) {
	instructions := []string{
		"f4", "cc", "fa", "0f0b", "f0ff00", "ff00", "3effe0", "ffe0", "6666 48e800000000", "48e800000000", "660f8400000000", "0f8400000000",
		"8ed0", "8ed8", "ec", "6448 8b042500000000", "f348ab", "c3",
	}
	text := ".text\n.globl codes\ncodes:\n"
	var codes [][]byte
	for _, digits := range instructions {
		code, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, make([]byte, 16-len(code))...)
		codes = append(codes, code)
		for _, b := range code {
			text += fmt.Sprintf(".byte %d\n", b)
		}
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"codes.S": text + ".section .note.GNU-stack\n",
		"main.c":  "#include <stdio.h>\n#include <unistd.h>\nextern char codes[];\nint main(void) { printf(\"%p\\n\", (void *)codes); fflush(stdout); pause(); }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := subject.Compile(t, "codes", filepath.Join(dir, "main.c"), filepath.Join(dir, "codes.S"))
	g := subject.Start(t, exec.Command(path))
	var begin uint64
	if _, err := fmt.Sscanf(g.Line(), "0x%x", &begin); err != nil {
		t.Fatal(err)
	}
	maps, err := proc.Maps(g.PID)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := maps.At(begin)
	for i, code := range codes {
		u, err := uprobe.Set(g.PID, path, begin-m.Start+m.Offset+uint64(16*i), uprobe.AtEntry)
		if err == nil {
			u.Close()
		}
		if why := kernel.Unsuited(code); (why == "") != (err == nil) {
			t.Errorf("%s: the kernel says %v, Unsuited %q", instructions[i], err, why)
		}
	}
}

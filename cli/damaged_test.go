package cli

import (
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	entry     = regexp.MustCompile(`\(DIE \(0x[0-9a-f]+\)`)
	reference = regexp.MustCompile(`\.long\t0x[0-9a-f]+\t# DW_AT_(type|abstract_origin|specification|sibling|call_origin)`)
	unitTag   = regexp.MustCompile(`\.uleb128 0x[0-9a-f]+\t# \(TAG: DW_TAG_(variable|lexical_block)\)`)
	typeOf    = regexp.MustCompile(`\.uleb128 0x49\t# \(DW_AT_type\)`)
)

// damagedTally compiles testdata/tally.c as a program that runs, with debug information whose entries refer to each other
// in cycles. Its section headers, unwind tables, names and build id are damaged at random.
func damagedTally(t *testing.T, name string, random *rand.Rand) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "tally.s"), filepath.Join(dir, name)
	gcc := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	gcc("-O2", "-g", "-dA", "-pthread", "-S", "-o", source, "testdata/tally.c")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	entries := entry.FindAll(text, -1)
	text = reference.ReplaceAllFunc(text, func([]byte) []byte {
		e := entries[random.IntN(len(entries))]
		return append([]byte(".long\t"), e[len("(DIE ("):len(e)-1]...)
	})
	text = unitTag.ReplaceAll(text, []byte(".uleb128 0x3d")) // DW_TAG_imported_unit
	if random.IntN(2) == 0 {
		text = typeOf.ReplaceAll(text, []byte(".uleb128 0x18")) // DW_AT_import
	}
	if err := os.WriteFile(source, text, 0o600); err != nil {
		t.Fatal(err)
	}
	gcc("-pthread", "-Wl,--build-id", "-o", program, source)
	damage(t, program, random)
	return program
}

// damage writes random bytes into parts of a program that the kernel and the dynamic linker do not read.
func damage(t *testing.T, program string, random *rand.Rand) {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(part []byte, times int) {
		for range times {
			part[random.IntN(len(part))] = byte(random.Uint32())
		}
	}
	for _, name := range []string{".debug_line", ".debug_rnglists", ".eh_frame", ".eh_frame_hdr", ".note.gnu.build-id", ".strtab"} {
		if s := file.Section(name); s != nil {
			spoil(text[s.Offset:s.Offset+s.FileSize], 8)
		}
	}
	headers := text[len(text)-len(file.Sections)*64:]
	spoil(headers, random.IntN(4))
	if random.IntN(2) == 0 {
		const headerSize = 0x3a // where the size of a section header stands: the program is no valid file any more
		text[headerSize]++
	}
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
}

// more lets the program call until it has made more calls than n, and returns their number.
func (c tally) more(n int) (calls int) {
	c.t.Helper()
	eventually(c.t, "the program calls", func() bool {
		c.says("go")
		calls = c.says("stop")
		return calls > n
	})
	return calls
}

// damagedPrograms asks with curl for the structures of running programs whose files are hostile, and counts their
// calls: a probe is refused or exact, and the programs run on.
func damagedPrograms(t *testing.T, s *served) {
	const programs = 4
	counted := 0
	for seed := range uint64(programs) {
		name := fmt.Sprintf("damaged%d", seed)
		c := startTallyAs(t, exec.Command(damagedTally(t, name, rand.New(rand.NewPCG(seed, 0)))))
		id := regexp.MustCompile(`p_\d+`).FindString(s.must(t, "", "attach", strconv.Itoa(c.PID)))
		ask := func(document string) string {
			status, answer := s.curl(t, "apps/"+name+"/mir", document)
			if !slices.Contains([]string{"200", "404", "422"}, status) {
				t.Errorf("%d: %s is answered by %s %.1000s", seed, document, status, answer)
			}
			return answer
		}
		ask("<sirreq>" + in("process:"+id) + "</sirreq>")
		if structure := wants(t, "--unix-socket", s.socket, "http://mirador/apps/"+name+"/sir"); strings.Contains(structure, `"`+name+`:fopen"`) {
			t.Errorf("%d: the units of the C library have the name of the program", seed)
		}
		before := c.says("stop")
		made := ask(`<instrreq activated="true" flush="true"><codeRegion from="` + name + `:work"/><metric name="COUNT"/><process id="*"/></instrreq>`)
		calls := c.more(before)
		if probe := regexp.MustCompile(`<probe id="probe-\d+"/>`).FindString(made); !strings.Contains(made, "<error>") {
			answer := ask(`<ctrlreq action="VALUE">` + probe + `</ctrlreq>`)
			if !strings.Contains(answer, fmt.Sprintf(`value="%d"`, calls-before)) {
				t.Errorf("%d: of %d calls: %s %s", seed, calls-before, made, answer)
			}
			counted++
		}
		s.must(t, "", "release", name)
		c.more(calls)
	}
	if counted == 0 || counted == programs {
		t.Errorf("%d of %d probes were possible", counted, programs)
	}
	if mb := s.resident(t); mb > 1000 {
		t.Errorf("the gateway uses %d MB", mb)
	}
}

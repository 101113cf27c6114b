package binary

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"mirador/sir"
)

// fast are options that let a short program in Java start sooner.
var fast = []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"}

// TestWovenJavaAgreesWithDebugger checks that a woven program in Java compiles without warnings, prints what it printed
// before, and begins and ends each region as often as a debugger stops at its lines. The methods that begin and end
// regions are replaced by such that count; the library is checked to have the markers of each.
func TestWovenJavaAgreesWithDebugger(t *testing.T) {
	const class = "org.example.ways_1.Ways"
	dir, plain := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "Ways.java")
	regions, refused := woven(t, "testdata/Ways.java", file)
	if len(regions) < 60 {
		t.Errorf("only %d regions can be woven; others: %v", len(regions), refused)
	}
	beside := filepath.Join(dir, "WaysMirador.java")
	text, err := os.ReadFile(beside)
	if err != nil {
		t.Fatal(err)
	}
	methods := markedMethods(t, string(text))
	counting := regexp.MustCompile(`static native void (\w+)\(\);`).ReplaceAllString(string(text), `static void $1() { counts.merge("$1", 1, Integer::sum); }`)
	const counts = "boolean on = true;\nprivate static final java.util.Map<String, Integer> counts = new java.util.HashMap<>();\n" +
		`static { Runtime.getRuntime().addShutdownHook(new Thread(() -> counts.forEach((m, n) -> System.out.println("\n" + m + " " + n)))); } static boolean loaded = `
	counting = strings.Replace(strings.Replace(counting, "boolean on = ", counts, 1), "loaded = load()", "loaded", 1)
	if err := os.WriteFile(beside, []byte(counting), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "javac", "-J-XX:TieredStopAtLevel=1", "-Xlint:all", "-Werror", "-d", dir, file, beside)
	run(t, "javac", "-J-XX:TieredStopAtLevel=1", "-d", plain, "testdata/Ways.java")
	var lines, ends = map[int]int{}, map[string]int{}
	for line := range strings.Lines(run(t, "java", append(fast, "testdata/Lines.java", class, plain)...)) {
		var at, n int
		fmt.Sscan(line, &at, &n)
		lines[at] = n
	}
	out, counted, _ := strings.Cut(run(t, "java", append(fast, "-cp", dir, class)...), "\n\n")
	if want := strings.TrimSpace(run(t, "java", append(fast, "-cp", plain, class)...)); out != want {
		t.Errorf("the woven program prints %q, not %q", out, want)
	}
	for line := range strings.Lines(counted) {
		var method string
		var n int
		fmt.Sscan(line, &method, &n)
		ends[method] = n
	}
	source, err := os.ReadFile("testdata/Ways.java")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(source), "System.exit(")
	exit := 1 + strings.Count(before, "\n")
	for _, r := range regions {
		begin, end := ends[methods["begin:"+r.ID]], ends[methods["end:"+r.ID]]
		of := r
		if r.Kind == sir.Finally { // of which the compiler makes copies: it is executed as often as its try
			of = regions[slices.IndexFunc(regions, func(try *sir.Region) bool { return try.ID+".finally" == r.ID })]
		}
		if want := expectedInJava(of, lines); begin != want || end != want-exits(r, exit) {
			t.Errorf("%s in line %d is begun %d and ended %d times, a debugger counts %d", r.ID, r.Line, begin, end, want)
		}
	}
}

// exits returns the number of executions of a region that do not end, because the program does: in a line.
func exits(r *sir.Region, line int) int {
	last := 0
	if r.Extent != nil {
		last = r.Extent.EndLine
	} else if r.Code != nil {
		last = r.Code.EndLine
	}
	if r.Line <= line && line <= last {
		return 1
	}
	return 0
}

// expectedInJava returns how often a debugger saw a region executed.
func expectedInJava(r *sir.Region, lines map[int]int) int {
	switch {
	case r.Kind == sir.Call, r.Kind == sir.Return, r.Kind == sir.Throw:
		return lines[r.Line]
	case r.Kind == sir.Method:
		for line := r.Line + 1; ; line++ {
			if n := lines[line]; n > 0 || line > r.Extent.EndLine {
				return n
			}
		}
	case r.Kind == sir.Body, r.Kind == sir.Branch, r.Kind == sir.Catch, r.Kind == sir.Lambda, r.Kind == sir.Scope:
		if r.Code != nil && r.Line == r.Code.EndLine {
			return lines[r.Line]
		}
		return lines[r.Line+1]
	}
	return lines[r.Line-1]
}

// markedMethods returns the methods of a class beside a source by begin: or end: and the id of the region, as the
// markers in its library say.
func markedMethods(t *testing.T, class string) map[string]string {
	t.Helper()
	encoded := ""
	for _, part := range regexp.MustCompile(`(?m)^ +"([\w+/=]+)",$`).FindAllStringSubmatch(class, -1) {
		encoded += part[1]
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "library.so")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	symbols := map[uint64]string{}
	for line := range strings.Lines(run(t, "nm", "-D", file)) {
		var at uint64
		var kind, name string
		fmt.Sscanf(line, "%x %s %s", &at, &kind, &name)
		symbols[at] = strings.TrimPrefix(name, "Java_org_example_ways_11_WaysMirador_")
	}
	im := open(t, file)
	found := map[string]string{}
	for _, r := range program(im).Markers {
		found["begin:"+r.ID], found["end:"+r.ID] = symbols[r.Code.Entries[0]], symbols[r.Code.Exits[0]]
	}
	return found
}

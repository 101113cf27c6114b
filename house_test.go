package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// direction says which packages of the house a package may import, and why no
// others. A name that ends in /... stands for the package and all below it. The
// first row that fits a package counts; a package without a row fails the test.
type direction struct {
	from   string
	may    []string
	reason string
}

var directions = []direction{
	{"omis", nil, "omis is the vocabulary that everyone shares; what it imported, everyone would import"},
	{"omis/node", []string{"omis"}, "what the engine asks of a machine, whatever machine it is"},
	{"omis/program", []string{"omis", "omis/node"}, "what requests compile to is data; placements run it"},
	{"omis/syntax", []string{"omis"}, "the request language is a text and its parse, whoever runs it"},
	{"omis/service", []string{"omis", "omis/node", "omis/program", "omis/syntax"}, "the table of services is data; what implements it imports it"},
	{"omis/engine/placing", []string{"omis", "omis/node", "omis/program", "omis/service"},
		"it chooses among placements, which it knows by interfaces; the engine's requests, tools and processes it reaches by interfaces of its own"},
	{"omis/engine/...", []string{"omis", "omis/node", "omis/program", "omis/syntax", "omis/service", "omis/ext/...", "omis/engine/..."},
		"the engine knows nodes, placements and other monitors by interfaces, so that it runs against a scripted fake"},
	{"omis/host/...", []string{"omis", "omis/node", "omis/host/..."}, "what Linux reports of a machine and its processes, on any processor; it changes no program"},
	{"omis/code/...", []string{"omis/code/...", "omis/host/proc", "sir/safedwarf"}, "code is decoded, judged and moved without a live process; of the host it takes the files that the code comes from"},
	{"omis/linux/subject", []string{"examples/child"}, "it starts the programs that tests observe, and observes none"},
	{"omis/linux/...", []string{"omis", "omis/node", "omis/program", "omis/host/...", "omis/code/...", "omis/linux/...", "sir/safedwarf"}, "the backend is platform code: it observes and knows of no request"},
	{"omis/monitor", []string{"omis", "omis/node", "omis/program", "omis/engine", "omis/ext/...", "omis/linux", "omis/place/calibrate"},
		"the one package that joins the engine and the backend; whoever opens a monitor chooses its placements"},
	{"omis/monitor/rig", []string{"omis", "omis/node", "omis/program", "omis/engine", "omis/monitor", "omis/host/...", "omis/linux/..."},
		"tests of placements have a whole monitor, which no placement may know"},
	{"omis/place/...", []string{"omis", "omis/node", "omis/program", "omis/place/...", "omis/host/...", "omis/code/..."},
		"a placement runs programs it is given; it knows of no request, and of the machine what the kernel and files with code report"},
	{"omis/ext/...", []string{"omis", "omis/node", "omis/program", "omis/syntax", "omis/service", "omis/ext/..."},
		"an extension adds services by the interface every extension has; the engine must not need to know it, nor it the engine"},
	{"omis/cluster/...", []string{"omis", "omis/syntax", "omis/cluster/..."}, "monitors on other nodes are reached by requests and replies alone"},
	{"sir", nil, "the structure document is a value that everyone shares"},
	{"sir/debuginfod", []string{"sir/binary"}, "debug files are fetched for the package that reads them, and for no other"},
	{"sir/safedwarf", nil, "all that read debug information share its limits, whatever they read it for"},
	{"sir/fetch", nil, "files are fetched from servers, whatever they contain"},
	{"sir/flow", nil, "a graph has loops and dominators, whatever it was made from"},
	{"sir/source/apart", []string{"sir", "sir/source"}, "it starts what reads sources, and knows no request and no gateway"},
	{"sir/source/outline", []string{"sir"}, "it makes the structure of what readers of languages find, whatever the language"},
	{"sir/source/grammar", []string{"sir", "sir/source/outline"}, "it makes regions of the syntax of C, C++ and Java; what else parses is no concern of it"},
	{"sir/source/...", []string{"sir", "sir/source/..."}, "sources are read without programs and without processes"},
	{"sir/weave/woven", []string{"sir"}, "regions and edits of texts are the same in all languages"},
	{"sir/weave/library", nil, "it writes a file of names and notes, whatever they mean"},
	{"sir/weave/fortran", []string{"sir", "sir/weave/woven", "sir/source/fortran"}, "it weaves into the statements that the scanner of Fortran finds"},
	{"sir/weave/...", []string{"sir", "sir/weave/..."}, "regions are written into texts: it opens no file, and knows no request"},
	{"sir/...", []string{"sir", "sir/flow", "sir/safedwarf"}, "whatever makes a structure (from binaries, from sources) needs nothing but the structure, and the loops of graphs"},
	{"schemas", nil, "schemas are files"},
	{"mir", []string{"schemas", "omis"}, "a document means nothing yet: mir reads and writes it, with placements as the monitor describes them"},
	{"mir/translate", []string{"mir", "sir", "omis", "omis/node", "omis/program", "omis/syntax"}, "translation is pure: a request, a structure and targets in, OMIS requests out"},
	{"mir/allowed", nil, "what a configuration allows is decided in the same way for all that use URIs"},
	{"mir/conform", []string{"mir", "mir/xsd", "schemas"}, "tests of any package check answers by it, so it knows documents only"},
	{"mir/api", []string{"mir", "omis"}, "the JSON documents of the gateway are values that the gateway and its clients share"},
	{"mir/client", []string{"mir", "mir/api", "mir/translate", "omis", "omis/host/owned", "sir"},
		"programs of users import the client, so it knows documents, and nothing that runs a gateway"},
	{"mir/...", []string{"mir", "schemas"}, "the validation of documents knows documents only"},
	{"probes/journal", []string{"omis/host/owned"}, "the journal is a file of keys and values, whatever they mean, in a directory that nobody else controls"},
	{"probes/deliver", []string{"mir", "mir/allowed", "mir/api"}, "destinations carry documents, whatever probe they are of"},
	{"probes/native", []string{"mir", "mir/translate", "omis", "omis/node", "omis/program", "omis/host/proc", "sir", "sir/binary"},
		"it reads what processes have loaded, as probes need it; it knows no probe"},
	{"probes", []string{"omis", "omis/node", "omis/program", "omis/syntax", "mir", "mir/api", "mir/translate", "sir", "sir/weave", "probes/deliver", "probes/journal"}, "probes talk to the engine in OMIS requests, as any tool does; they know no backend and no HTTP"},
	{"http/...", []string{"mir", "mir/...", "sir", "sir/fetch", "sir/source", "sir/weave", "omis", "omis/node", "omis/syntax", "omis/service", "probes", "probes/deliver", "schemas", "omis/host/owned", "http/..."},
		"the gateway carries documents to probes and requests to a tool; backends and the engine are joined to it by cli"},
	{"cli/gate/verdict", nil, "statistics are numbers in and verdicts out"},
	{"cli/gate/request", []string{"mir", "mir/translate", "cli/gate/verdict"}, "a gate file is a document: it is read without a gateway or a program"},
	{"cli/gate/history", []string{"cli/gate/recorded", "cli/gate/request", "cli/gate/verdict"}, "a history keeps values in files, whoever measured them"},
	{"cli/gate/recorded", []string{"cli/gate/request", "mir"}, "files are read and written without a gateway, whoever judges their values"},
	{"cli/gate/report", []string{"cli/gate/verdict"}, "reports print verdicts, whoever measured them"},
	{"cli/gate/measure", []string{"cli/gate/request", "cli/gate/verdict", "mir", "mir/client", "omis", "omis/host/proc", "omis/syntax", "sir"},
		"a gate measures by requests to a gateway, as any program of a user can"},
	{"cli/gate", []string{"cli/gate/..."}, "it joins the measurement and the verdicts of a gate; it knows no gateway"},
	{"cli/session", []string{"http", "mir/client", "omis", "omis/service", "omis/syntax"}, "a session is a client: it reaches the monitor by a gateway only"},
	{"cli/...", []string{"..."}, "the command line joins the parts"},
	{"bench/...", []string{"..."}, "a benchmark measures any part"},
	{"torture", []string{"omis", "omis/syntax", "omis/host/proc", "omis/host/uprobe", "sir", "sir/binary", "mir/client", "torture/sweep", "examples/child"},
		"it plagues programs by requests to a gateway, as any tool does, and looks after them by what the kernel and their files tell"},
	{"torture/sweep", []string{"omis", "omis/program", "omis/engine", "omis/linux", "omis/monitor", "omis/place/inline", "omis/place/kernel", "examples/child"},
		"it chooses the placement of each probe, which only a monitor of its own allows, and judges by what programs return"},
	{"torture/siege", []string{"examples/child", "schemas"}, "it sends what anybody can send, by HTTP alone; its target is a program like others"},
	{"examples/...", []string{"examples/..."}, "target programs are observed from outside, by tests of any package"},
	{"scripts/...", nil, "the programs of the Makefile serve any checkout, also one that does not build"},
	{"", []string{"cli"}, "main is thin"},
}

// goPackage is what go list tells of a package.
type goPackage struct {
	ImportPath, Dir, Doc      string
	GoFiles, CgoFiles         []string
	TestGoFiles, XTestGoFiles []string
	Imports                   []string // of the package itself, not of its tests
}

func packages(t *testing.T) []goPackage {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// listed calls go list once for all tests: it takes seconds.
var listed = sync.OnceValues(func() ([]goPackage, error) {
	out, err := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Doc,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Imports", "./...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p goPackage
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
})

// inside is the path of a package within the module.
func inside(importPath string) (path string, ours bool) {
	if importPath == "mirador" {
		return "", true
	}
	return strings.CutPrefix(importPath, "mirador/")
}

func matches(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	tree, isTree := strings.CutSuffix(pattern, "/...")
	return path == tree || isTree && strings.HasPrefix(path, tree+"/")
}

// forbidden says why from may not import to, "" if it may.
func forbidden(from, to string) string {
	i := slices.IndexFunc(directions, func(d direction) bool { return matches(d.from, from) })
	if i < 0 {
		return fmt.Sprintf("%s has no row in the table of import directions: say whom it may import, and why no others", from)
	}
	d := directions[i]
	if slices.ContainsFunc(d.may, func(pattern string) bool { return matches(pattern, to) }) {
		return ""
	}
	if len(d.may) == 0 {
		return fmt.Sprintf("%s imports %s but may import nothing of the house: %s", from, to, d.reason)
	}
	return fmt.Sprintf("%s imports %s but may import only %s: %s", from, to, strings.Join(d.may, ", "), d.reason)
}

func TestImportDirections(t *testing.T) {
	for _, p := range packages(t) {
		from, _ := inside(p.ImportPath)
		for _, imported := range p.Imports {
			if to, ours := inside(imported); ours {
				if why := forbidden(from, to); why != "" {
					t.Error(why)
				}
			}
		}
	}
}

// mostVocabulary bounds the exported names of package omis, which every package shares.
const mostVocabulary = 80

func TestVocabularyIsSmall(t *testing.T) {
	files, err := filepath.Glob("omis/*.go")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			count += exportedNames(d)
		}
	}
	if count == 0 || count >= mostVocabulary {
		t.Errorf("omis exports %d names, want fewer than %d: move what not every package needs to omis/node or omis/program", count, mostVocabulary)
	}
}

// exportedNames counts the exported names that a declaration adds to its package.
func exportedNames(d ast.Decl) (n int) {
	count := func(names ...*ast.Ident) {
		for _, name := range names {
			if name.IsExported() {
				n++
			}
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			count(d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				count(spec.Name)
			case *ast.ValueSpec:
				count(spec.Names...)
			}
		}
	}
	return n
}

func TestForbiddenEdgesAreFound(t *testing.T) {
	for _, edge := range [][2]string{
		{"omis", "sir"}, {"sir", "omis"}, {"omis/engine", "omis/linux"}, {"omis/engine", "omis/place/trap"},
		{"omis/engine/fake", "omis/cluster"}, {"omis/linux/resident", "omis/service"}, {"mir", "omis/engine"}, {"mir", "sir"},
		{"mir/translate", "omis/engine"}, {"probes", "omis/linux"}, {"probes", "http"}, {"http", "omis/engine"},
		{"http", "cli"}, {"sir/binary", "omis"}, {"omis/ext/pa", "omis/engine"}, {"", "omis"}, {"new", "omis"},
	} {
		if forbidden(edge[0], edge[1]) == "" {
			t.Errorf("%s may import %s", edge[0], edge[1])
		}
	}
	for _, edge := range [][2]string{
		{"omis/engine", "omis"}, {"mir/translate", "sir"}, {"cli", "omis/linux"}, {"", "cli"}, {"sir/binary", "sir"},
	} {
		if why := forbidden(edge[0], edge[1]); why != "" {
			t.Error(why)
		}
	}
}

func TestEveryPackageIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles)+len(p.CgoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment: what it is for, who may import it, which goroutine owns what", p.ImportPath)
		}
	}
}

// TestArchitectureNamesPackages: doc/architecture.md has a row for every package, and
// for no others.
func TestArchitectureNamesPackages(t *testing.T) {
	page, err := os.ReadFile("doc/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\S").FindAllSubmatch(page, -1) {
		rows = append(rows, string(row[1]))
	}
	for _, p := range packages(t) {
		if path, _ := inside(p.ImportPath); path != "" {
			want = append(want, path)
		}
	}
	for _, path := range want {
		if !slices.Contains(rows, path) {
			t.Errorf("doc/architecture.md has no row for %s: say in a line or two what it does", path)
		}
	}
	for _, row := range rows {
		if !slices.Contains(want, row) {
			t.Errorf("doc/architecture.md has a row for %s, which is not a package", row)
		}
	}
}

// Names that say nothing about the job.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "misc", "base", "lib"}

func TestPackagesAreNamedForTheirJob(t *testing.T) {
	for _, p := range packages(t) {
		if path, _ := inside(p.ImportPath); slices.Contains(emptyNames, filepath.Base(path)) {
			t.Errorf("%s: name the job", p.ImportPath)
		}
	}
}

// Longer files have more than one job.
const mostLines = 700

// mostMethods bounds the methods of a type: one with more owns more than one kind of state.
const mostMethods = 60

func TestTypesAreSmall(t *testing.T) {
	for _, p := range packages(t) {
		path, _ := inside(p.ImportPath)
		count := make(map[string]int)
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
					count[path+"."+receiver(d.Recv.List[0].Type)]++
				}
			}
		}
		for name, n := range count {
			if n > mostMethods {
				t.Errorf("%s has %d methods, want at most %d: give each kind of state a type of its own", name, n, mostMethods)
			}
		}
	}
}

// receiver returns the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

var (
	generated  = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	unfinished = regexp.MustCompile(`\b(` + strings.Join([]string{"TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK"}, "|") + `)\b`)
)

func TestFiles(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles) {
			path := filepath.Join(p.Dir, name)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(text, []byte("\n")); n > mostLines && !generated.Match(text) {
				t.Errorf("%s has %d lines, more than %d: it has more than one job", path, n, mostLines)
			}
			if at := unfinished.FindIndex(text); at != nil {
				t.Errorf("%s:%d: %s: finish it, or leave it out", path, 1+bytes.Count(text[:at[0]], []byte("\n")), text[at[0]:at[1]])
			}
		}
	}
}

// unlimited matches calls that read debug information of any file without limits.
var unlimited = regexp.MustCompile(`\.DWARF\(\)|\bdwarf\.New\(|\.LineReader\(|\bgosym\.New`)

// TestDebugInformationIsReadWithinLimits checks that only sir/safedwarf opens DWARF: a file can
// make debug/dwarf exhaust memory and stack.
func TestDebugInformationIsReadWithinLimits(t *testing.T) {
	for _, p := range packages(t) {
		for _, name := range slices.Concat(p.GoFiles, p.CgoFiles) {
			text, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			path, _ := inside(p.ImportPath)
			if call := unlimited.Find(text); call != nil && path != "sir/safedwarf" {
				t.Errorf("%s/%s calls %s: use sir/safedwarf", path, name, call)
			}
		}
	}
}

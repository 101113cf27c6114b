package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// A comment may name a file (node.go), a member of a type or of a package (Node.Watch,
// node.Node), or an identifier in mixed case (mostLines). What it names must exist;
// otherwise the comment is older than the code.

var (
	fileNamed   = regexp.MustCompile(`[\w./*-]*\w\.(go|c|cc|s|md|txt|txtar|xsd|dtd|html|sh)\b`)
	memberNamed = regexp.MustCompile(`\b([A-Za-z]\w*)\.([A-Za-z]\w*)\b`)
	mixedCase   = regexp.MustCompile(`\b[A-Za-z][a-z0-9]+[A-Z]\w*…?`)
	// foreign matches quotations, web addresses and files of Linux.
	foreign = regexp.MustCompile(`"[^"]*"|\w+://\S+|\b(arch|kernel|include|mm|fs)/[\w/]+\.[chS]\b`)
	// placeholder matches NAME and PID in a path, which stand for any name.
	placeholder = regexp.MustCompile(`\b[A-Z]{2,}\b`)
)

// elsewhere has words in mixed case that are not identifiers of ours.
var elsewhere = map[string]string{
	"MaxBytesReader": "net/http", "ResponseController": "net/http",
	"NameStartChar": "XML 1.0", "NameChar": "XML 1.0",
	"ModRM":            "x86",
	"LeVeque":          "a person",
	"GitHub":           "a company",
	"StackNosplitBase": "Go's internal/abi",
}

// source is a parsed file of the repository.
type source struct {
	path string // from the top
	file *ast.File
	set  *token.FileSet
}

// house is what comments are checked against.
type house struct {
	sources []source
	files   []string            // paths of all files, each after a slash
	words   map[string]bool     // all words except those in comments of Go files
	scopes  map[string]*names   // of packages, by their paths from the top
	called  map[string][]*names // the same by the names of the packages
}

// names are what a package declares.
type names struct {
	all   map[string]bool
	types map[string]*members
}

// members are the fields and methods of a type.
type members struct {
	own      map[string]bool
	embedded []string // types of the same package
	open     bool     // embeds a type of another package: any name may be a member
}

func (n *names) typeNamed(name string) *members {
	if n.types[name] == nil {
		n.types[name] = &members{own: map[string]bool{}}
	}
	return n.types[name]
}

// has reports whether a type has a field or method of a name.
func (n *names) has(typ, member string) bool {
	m := n.types[typ]
	return m == nil || m.open || m.own[member] || slices.ContainsFunc(m.embedded, func(e string) bool { return n.has(e, member) })
}

var anyWord = regexp.MustCompile(`[A-Za-z_]\w*`)

func theHouse(t *testing.T) *house {
	t.Helper()
	h, err := readHouse()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

var readHouse = sync.OnceValues(func() (*house, error) {
	h := &house{words: map[string]bool{}, scopes: map[string]*names{}, called: map[string][]*names{}}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || name == "build" || name != "." && name != ".ci" && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		h.files = append(h.files, "/"+name)
		return h.add(name)
	})
	return h, err
})

func (h *house) add(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if path.Ext(name) != ".go" {
		h.learn(string(text))
		return nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	h.sources = append(h.sources, source{name, file, set})
	dir := path.Dir(name)
	n := h.scopes[dir]
	if n == nil {
		n = &names{map[string]bool{}, map[string]*members{}}
		h.scopes[dir] = n
		h.called[strings.TrimSuffix(file.Name.Name, "_test")] = append(h.called[strings.TrimSuffix(file.Name.Name, "_test")], n)
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			h.words[node.Name] = true
		case *ast.BasicLit:
			h.learn(node.Value)
		}
		return true
	})
	for _, decl := range file.Decls {
		n.declare(decl)
	}
	return nil
}

func (h *house) learn(text string) {
	for _, word := range anyWord.FindAllString(text, -1) {
		h.words[word] = true
	}
}

func (n *names) declare(decl ast.Decl) {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			n.all[decl.Name.Name] = true
			return
		}
		if typ := base(decl.Recv.List[0].Type); typ != "" {
			n.typeNamed(typ).own[decl.Name.Name] = true
		}
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				n.all[spec.Name.Name] = true
				n.declareType(spec)
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					n.all[name.Name] = true
				}
			}
		}
	}
}

func (n *names) declareType(spec *ast.TypeSpec) {
	m := n.typeNamed(spec.Name.Name)
	var fields *ast.FieldList
	switch typ := spec.Type.(type) {
	case *ast.StructType:
		fields = typ.Fields
	case *ast.InterfaceType:
		fields = typ.Methods
	default:
		m.embed(spec.Type)
		return
	}
	for _, field := range fields.List {
		if len(field.Names) == 0 {
			m.embed(field.Type)
		}
		for _, name := range field.Names {
			m.own[name.Name] = true
		}
	}
}

// embed adds the members of another type.
func (m *members) embed(typ ast.Expr) {
	name := base(typ)
	if name == "" {
		m.open = true
		return
	}
	m.embedded = append(m.embedded, name)
	m.own[name] = true
}

// base is the name of a type of the same package, "" for other types.
func base(typ ast.Expr) string {
	switch typ := typ.(type) {
	case *ast.Ident:
		return typ.Name
	case *ast.StarExpr:
		return base(typ.X)
	case *ast.IndexExpr:
		return base(typ.X)
	case *ast.IndexListExpr:
		return base(typ.X)
	}
	return ""
}

func TestNamesInComments(t *testing.T) {
	h := theHouse(t)
	for _, s := range h.sources {
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				at := s.set.Position(c.Pos())
				for _, problem := range h.stale(s, c.Text) {
					t.Errorf("%s:%d: %s", s.path, at.Line, problem)
				}
			}
		}
	}
}

// stale returns what a comment names that does not exist.
func (h *house) stale(s source, comment string) (problems []string) {
	comment = foreign.ReplaceAllString(comment, "")
	for _, name := range fileNamed.FindAllString(comment, -1) {
		if !h.hasFile(name) && !placeholder.MatchString(name) {
			problems = append(problems, name+" is not a file of this repository")
		}
	}
	comment = fileNamed.ReplaceAllString(comment, "")
	for _, m := range memberNamed.FindAllStringSubmatch(comment, -1) {
		if !h.hasMember(s, m[1], m[2]) {
			problems = append(problems, m[1]+" has no "+m[2])
		}
	}
	for _, word := range mixedCase.FindAllString(comment, -1) {
		name, isPrefix := strings.CutSuffix(word, "…")
		if known := h.words[name] || elsewhere[name] != "" || isPrefix && h.begins(name); !known {
			problems = append(problems, "nothing is called "+word)
		}
	}
	return problems
}

func (h *house) hasFile(name string) bool {
	return slices.ContainsFunc(h.files, func(file string) bool { return strings.HasSuffix(file, "/"+strings.TrimPrefix(name, "/")) })
}

// begins reports whether a word begins with a prefix.
func (h *house) begins(prefix string) bool {
	for word := range h.words {
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}
	return false
}

func (h *house) hasMember(s source, outer, member string) bool {
	own := h.scopes[path.Dir(s.path)]
	if _, is := own.types[outer]; is {
		return own.has(outer, member)
	}
	if packages := h.called[outer]; packages != nil && !slices.Contains(packages, own) && unicode.IsUpper(rune(member[0])) {
		return slices.ContainsFunc(packages, func(n *names) bool { return n.all[member] })
	}
	return true
}

// TestNamesAreFound: stale names are found, and names that exist are not.
func TestNamesAreFound(t *testing.T) {
	h := theHouse(t)
	i := slices.IndexFunc(h.sources, func(s source) bool { return s.path == "omis/node/node.go" })
	for comment, want := range map[string]int{
		"// see hand.go": 1,
		"// see omis/node/node.go and capability.go": 0,
		"// arch/x86/kernel/uprobes.c":               0,
		"// Node.nothing guards it":                  1,
		"// Node.Identify":                           0,
		"// syntax.Nothing parses it":                1,
		"// syntax.Parse parses it":                  0,
		"// noSuch" + "Thing":                        1,
		"// EventProc…, Event" + "Nothing…":          1,
		`// "hand.go" is a quotation`:                0,
	} {
		if got := h.stale(h.sources[i], comment); len(got) != want {
			t.Errorf("%s: %q, want %d problems", comment, got, want)
		}
	}
}

var (
	linkTo    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchor  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	testNamed = regexp.MustCompile(`\bTest[A-Z0-9]\w*`)
	pathIn    = regexp.MustCompile("`((?:omis|mir|sir|http|cli|probes|bench|scripts|schemas|examples|torture|doc)/[\\w/.-]+)`")
)

// anchors are what a page's headings are called in links, as GitHub has them.
func anchors(page string) []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		name := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		all = append(all, name)
	}
	return all
}

// TestLinksInDocuments: links between documents lead somewhere, and the paths and tests that
// documents name exist.
func TestLinksInDocuments(t *testing.T) {
	h := theHouse(t)
	for _, file := range h.files {
		if path.Ext(file) != ".md" {
			continue
		}
		page, err := os.ReadFile("." + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range linkTo.FindAllStringSubmatch(string(page), -1) {
			if problem := badLink(file, string(page), m[1]); problem != "" {
				t.Errorf("%s: %s: %s", file, m[1], problem)
			}
		}
		for _, test := range testNamed.FindAllString(string(page), -1) {
			if !h.words[test] {
				t.Errorf("%s: there is no %s", file, test)
			}
		}
		for _, m := range pathIn.FindAllStringSubmatch(string(page), -1) {
			if _, err := os.Stat(m[1]); err != nil && !placeholder.MatchString(m[1]) {
				t.Errorf("%s: there is no %s", file, m[1])
			}
		}
	}
}

// badLink says what is wrong with a link on a page.
func badLink(file, page, link string) string {
	if strings.Contains(link, "://") {
		return ""
	}
	target, anchor, _ := strings.Cut(link, "#")
	if target != "" {
		text, err := os.ReadFile("." + path.Join(path.Dir(file), target))
		if err != nil && anchor == "" {
			_, err = os.Stat("." + path.Join(path.Dir(file), target)) // a directory
		}
		if err != nil {
			return err.Error()
		}
		page = string(text)
	}
	if anchor != "" && !slices.Contains(anchors(page), anchor) {
		return "the page has no such heading"
	}
	return ""
}

package main_test

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	glossaryWord = regexp.MustCompile(`(?m)^\| \*\*([^*]+)\*\* \|`)
	unusedRow    = regexp.MustCompile(`(?m)^\| ([a-z, ]+) \| ([a-z, ]+) \|$`)
	partOfName   = regexp.MustCompile(`[A-Z]+(?:[a-z0-9]+)?|[a-z0-9]+`)
)

// unusedWords returns the words of the glossary's second table with the words to use instead.
func unusedWords(page string) map[string]string {
	_, table, _ := strings.Cut(page, "## Words that are not used")
	words := make(map[string]string)
	for _, row := range unusedRow.FindAllStringSubmatch(table, -1) {
		for _, word := range strings.Split(row[1], ", ") {
			if word != "not" {
				words[word] = row[2]
			}
		}
	}
	return words
}

// TestExportedNamesUseTheGlossary checks that exported names contain no word for which the
// glossary has another one, so that each word has one meaning.
func TestExportedNamesUseTheGlossary(t *testing.T) {
	page, err := os.ReadFile("doc/GLOSSARY.md")
	if err != nil {
		t.Fatal(err)
	}
	var defined []string
	for _, m := range glossaryWord.FindAllStringSubmatch(string(page), -1) {
		defined = append(defined, strings.Split(m[1], ", ")...)
	}
	unused := unusedWords(string(page))
	for word, instead := range unused {
		if slices.Contains(defined, word) {
			t.Errorf("the glossary both defines %s and says that it is not used", word)
		}
		for _, other := range strings.Split(instead, ", ") {
			if !slices.Contains(defined, other) {
				t.Errorf("the glossary says %s instead of %s, but does not define it", other, word)
			}
		}
	}
	for _, s := range theHouse(t).sources {
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		for _, name := range exported(s.file) {
			for _, part := range partOfName.FindAllString(name, -1) {
				part = strings.ToLower(part)
				if instead := unused[strings.TrimSuffix(part, "s")]; instead != "" {
					t.Errorf("%s exports %s: the glossary has %s for %s", path.Dir(s.path), name, instead, part)
				}
			}
		}
	}
}

// TestCommentsSayReports checks that comments use Go's phrase for a function that returns a
// bool.
func TestCommentsSayReports(t *testing.T) {
	for _, s := range theHouse(t).sources {
		for _, group := range s.file.Comments {
			if text := group.Text(); strings.Contains(text, " tells "+"whether ") {
				t.Errorf("%s: write \"reports whether\"", s.set.Position(group.Pos()))
			}
		}
	}
}

// exported returns the names that a file exports: its package's, of its types, functions and
// values, and of their fields and methods.
func exported(file *ast.File) (names []string) {
	ast.Inspect(file, func(node ast.Node) bool {
		var idents []*ast.Ident
		switch node := node.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.FuncDecl:
			idents = append(idents, node.Name)
		case *ast.TypeSpec:
			idents = append(idents, node.Name)
		case *ast.ValueSpec:
			idents = node.Names
		case *ast.Field:
			idents = node.Names
		}
		for _, i := range idents {
			if i.IsExported() {
				names = append(names, i.Name)
			}
		}
		return true
	})
	return names
}

// TestUnusedWordsAreFound checks that the table is read, and names are split into words.
func TestUnusedWordsAreFound(t *testing.T) {
	words := unusedWords("# Words\n| **journal** | a file |\n## Words that are not used\n| not | but |\n| --- | --- |\n| book, diary | journal |\n")
	if len(words) != 2 || words["diary"] != "journal" || words["not"] != "" {
		t.Errorf("%v", words)
	}
	if parts := partOfName.FindAllString("DiaryOf2Threads", -1); !slices.Equal(parts, []string{"Diary", "Of2", "Threads"}) {
		t.Errorf("%q", parts)
	}
}

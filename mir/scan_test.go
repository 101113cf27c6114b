package mir

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestScanRefuses(t *testing.T) {
	tests := []struct{ name, document, message string }{
		{"nothing", "", "line 1, column 1: there is no element; a MIR document was expected"},
		{"a comment only", "<!-- x -->", "line 1, column 11: there is no element; a MIR document was expected"},
		{"text", "hello", "line 1, column 1: the document does not begin with an element; a MIR document was expected"},
		{"text after the root", "<a/>\n x", "line 2, column 2: text is not allowed after the root element"},
		{"CDATA after the root", "<a/><![CDATA[x]]>", "line 1, column 5: text is not allowed outside the root element"},
		{"two roots", "<a/><b/>", "line 1, column 5: a second root element; a document has one"},
		{"lost attribute name", `<instrreq><thread="1045"/></instrreq>`,
			`line 1, column 18: the attribute's name is missing before =; write <thread id="1045"/>`},
		{"lost attribute name of a metric", `<metric = 'COUNT'/>`,
			`line 1, column 9: the attribute's name is missing before =; write <metric name="COUNT"/>`},
		{"the example of MIR 4", "<instrreq>\n  <measuring\n    delivery=\"1000\"\n    <aggregate function=\"MAXIMUM\"/>",
			"line 4, column 5: the start tag of <measuring> is not closed; write > or /> before this <"},
		{"the example of MIR 2", "<sirreq>\n  <resource in=\"a\">\n</sirreq>",
			"line 3, column 1: </sirreq> does not close <resource> of line 2, column 3; write </resource> first, or <resource …/> there"},
		{"not closed", "<a>\n<b/>", "line 2, column 5: the document ends inside <a> of line 1, column 1; close it with </a>"},
		{"closed twice", "<a/></a>", "line 1, column 5: </a> closes nothing"},
		{"start tag cut", "<a b='c'", "line 1, column 9: the document ends inside the start tag of <a>"},
		{"end tag cut", "<a></a", "line 1, column 7: the end tag </a is not closed; write >"},
		{"end tag without a name", "<a></>", "line 1, column 4: the name of an element must follow </"},
		{"no name", "< a/>", "line 1, column 1: the name of an element must follow < without a blank (in text write &lt;)"},
		{"< at the end", "<a><", "line 1, column 4: the document ends after <"},
		{"attribute without value", "<a flush/>", `line 1, column 9: the attribute flush of <a> has no value; write flush="…"`},
		{"value without quotes", "<a flush=true/>", `line 1, column 10: the value of flush is not in quotes; write flush="…"`},
		{"value not closed", "<a b='c/>", "line 1, column 6: the value of b is not closed by '"},
		{"value with <", "<a b='<'/>", "line 1, column 7: < is not allowed in the value of b; write &lt; (or is a quote missing?)"},
		{"no blank between attributes", `<a b="1"c="2"/>`, "line 1, column 9: a blank is missing before the attribute c"},
		{"attribute twice", `<a b="1" b="2"/>`, "line 1, column 10: the attribute b appears twice in <a>"},
		{"value without a name", `<a "1"/>`, `line 1, column 4: a value without a name in <a>; attributes are written name="value"`},
		{"slash alone", `<a / b="1">`, "line 1, column 4: > is missing after / in <a>"},
		{"unknown entity", "<a>&nbsp;</a>", "line 1, column 4: the entity &nbsp; is not known: only &lt; &gt; &amp; &quot; and &apos; are"},
		{"ampersand alone", "<a b='x & y'/>", "line 1, column 9: & alone is not allowed; write &amp;"},
		{"character not allowed in XML", "<a>&#0;</a>", "line 1, column 4: the character reference does not name a character that XML can carry"},
		{"]]> in text", "<a>]]></a>", "line 1, column 4: ]]> is not allowed in text; write ]]&gt;"},
		{"comment not closed", "<a><!-- x</a>", "line 1, column 4: the comment is not closed; write --> after it"},
		{"-- in a comment", "<a><!-- x -- y --></a>", "line 1, column 11: -- is not allowed inside a comment"},
		{"CDATA not closed", "<a><![CDATA[x</a>", "line 1, column 4: the CDATA section is not closed; write ]]> after it"},
		{"DTD", "<?xml version='1.0'?>\n<!DOCTYPE a>\n<a/>", "line 2, column 1: document type declarations are not accepted; remove <!DOCTYPE …>"},
		{"entity declaration", `<!ENTITY x "y"><a/>`, "line 1, column 1: entity declarations are not accepted; remove <!ENTITY …>"},
		{"processing instruction", "<a><?x y?></a>", "line 1, column 4: processing instructions are not accepted; remove <?…?>"},
		{"late declaration", " <?xml version='1.0'?><a/>", "line 1, column 2: processing instructions are not accepted; remove <?…?>"},
		{"XML 1.1", "<?xml version='1.1'?><a/>", `line 1, column 1: XML "1.1" is not accepted, only 1.0`},
		{"another encoding", "<?xml version='1.0' encoding='ISO-8859-2'?><a/>",
			`line 1, column 1: the encoding "ISO-8859-2" is not accepted; send the document in UTF-8 or ISO-8859-1`},
		{"a fault in Latin-1", "<?xml version='1.0' encoding='ISO-8859-1'?><a b='\xe4\xf6'c=''/>",
			"line 1, column 53: a blank is missing before the attribute c"},
		{"bad declaration", "<?xml encoding='UTF-8'?><a/>",
			`line 1, column 1: the XML declaration is not well-formed; write <?xml version="1.0" encoding="UTF-8"?>`},
		{"UTF-16", "\xff\xfe<\x00a\x00", "line 1, column 1: the document is in UTF-16; send it in UTF-8"},
		{"not UTF-8", "<a>\n\u00e9\xe9</a>", "line 2, column 2: the byte 0xE9 is not UTF-8; send the document in UTF-8"},
		{"control character", "<a>\x01</a>", "line 1, column 4: the character U+0001 is not allowed in XML"},
		{"not a character", "<a>\uffff</a>", "line 1, column 4: the character U+FFFF is not allowed in XML"},
		{"column in runes", "<a ü='äöü' b=1/>", "line 1, column 14: the value of b is not in quotes; write b=\"…\""},
		{"unknown prefix", "<g:a/>", `line 1, column 1: the prefix g of <g:a> is not declared; write xmlns:g="…"`},
		{"unknown attribute prefix", "<a g:b='1'/>", `line 1, column 4: the prefix g of the attribute g:b is not declared; write xmlns:g="…"`},
		{"prefix out of scope", "<a><g:b xmlns:g='urn:x'/><g:c/></a>", `line 1, column 26: the prefix g of <g:c> is not declared; write xmlns:g="…"`},
		{"prefix undeclared", "<a xmlns:g=''/>", "line 1, column 4: the prefix g is declared without a namespace"},
		{"prefix xml", "<a xmlns:xml='urn:x'/>", "line 1, column 4: the prefix xml cannot be declared"},
		{"same attribute by two prefixes", "<a xmlns:g='urn:x' xmlns:h='urn:x' g:b='1' h:b='2'/>",
			`line 1, column 44: the attribute b of the namespace "urn:x" appears twice in <a>`},
		{"two colons", "<a:b:c/>", "line 1, column 1: the name of an element must follow < (in text write &lt;)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Scan([]byte(test.document), RequestLimits())
			var refused *Error
			if !errors.As(err, &refused) || refused.Kind != Malformed {
				t.Fatalf("Scan answered %v, want a malformed document", err)
			}
			if err.Error() != test.message {
				t.Errorf("got  %s\nwant %s", err, test.message)
			}
		})
	}
}

func TestScanReads(t *testing.T) {
	const document = "\uFEFF<?xml version='1.0' encoding='utf-8' standalone='yes'?>\n" +
		"<!-- <a> - -->\n" +
		"<a xmlns='urn:d' xmlns:g = \"urn:g\"\n   ü='&lt;&#65;&#x42;&amp;\r\n&#10;' g:x='1'>\n" +
		" <b xmlns=''>x &gt; y<!-- c --><![CDATA[<z> & ]]>\r\n</b ><g:c/> text </a>\n"
	tree, err := Scan([]byte(document), RequestLimits())
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := tree.At(0), tree.At(1), tree.At(2)
	if tree.Len() != 3 || a.Space() != "urn:d" || b.Space() != "" || c.Space() != "urn:g" || c.Name() != "c" || c.Tag() != "g:c" {
		t.Errorf("elements: %+v", tree.elements)
	}
	if got, want := a.Attributes()[2].Value, "<AB& \n"; got != want {
		t.Errorf("ü is %q, want %q", got, want)
	}
	if got := a.Attributes()[3]; got.Name != "x" || got.Space != "urn:g" || got.Pos != (Position{5, 8}) {
		t.Errorf("g:x is %+v", got)
	}
	if _, ok := a.Attribute("x"); ok {
		t.Error("an attribute of another namespace was taken for MIR's")
	}
	if got, want := b.Text(), "x > y<z> & \n"; got != want {
		t.Errorf("the text is %q, want %q", got, want)
	}
	if b.Pos() != (Position{6, 2}) || c.Pos() != (Position{7, 6}) {
		t.Errorf("positions %v and %v", b.Pos(), c.Pos())
	}
	if parent, ok := c.Parent(); !ok || parent != a || !a.HasText() || c.HasText() {
		t.Error("the tree is not what was written")
	}
}

// TestHostile checks that the scanner refuses hostile documents quickly and with a position.
func TestHostile(t *testing.T) {
	laughs := `<!DOCTYPE a [<!ENTITY e0 "lol"><!ENTITY e1 "&e0;&e0;&e0;&e0;">]><a>&e1;</a>`
	long := RequestLimits()
	long.Bytes = 512 << 20 // so that the other limits are reached
	tests := []struct {
		name, document string
		limits         Limits
		kind           Kind
		message        string
	}{
		{"100 MB attribute", `<a b="` + strings.Repeat("x", 100<<20) + `"/>`, RequestLimits(), TooLarge,
			"the document has 104857609 bytes; at most 65536 are accepted"},
		{"deep", strings.Repeat("<a>", 1_000_000), long, TooLarge, "line 1, column 97: elements are nested more than 32 deep"},
		{"300,000 attributes", "<a" + manyAttributes(300_000) + "/>", long, TooLarge, "line 1, column "},
		{"2,000,000 siblings", "<a>" + strings.Repeat("<b/>", 2_000_000), long, TooLarge, "line 1, column 32768: there are more than 8192 elements"},
		{"long name", "<" + strings.Repeat("n", 60_000) + "/>", long, TooLarge, "line 1, column 1: an element's name has 60000 bytes; at most 128 are accepted"},
		{"long attribute name", "<a " + strings.Repeat("n", 60_000) + "='1'/>", long, TooLarge,
			"line 1, column 4: an attribute's name has 60000 bytes; at most 128 are accepted"},
		{"billion laughs", laughs, RequestLimits(), Malformed, "line 1, column 1: document type declarations are not accepted"},
		{"external entity", `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>`, RequestLimits(), Malformed, "line 1, column 1: "},
		{"long value in a message", `<instrreq flush="` + strings.Repeat("x", 60_000) + `"/>`, RequestLimits(), Invalid,
			`line 1, column 11: flush is "` + strings.Repeat("x", 60) + `…"; it can be true or false`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data := []byte(test.document)
			began := processorTime(t)
			_, err := Decode(data, test.limits)
			if took := processorTime(t) - began; took > 500*time.Millisecond {
				t.Errorf("refusing took %v", took)
			}
			var refused *Error
			if !errors.As(err, &refused) || refused.Kind != test.kind || !strings.HasPrefix(err.Error(), test.message) {
				t.Errorf("got %.200v, want %s", err, test.message)
			}
		})
	}
}

// processorTime returns the CPU time of this process. Elapsed time would depend on the load of
// the machine.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func manyAttributes(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString(" x")
		for ; i > 0; i /= 10 {
			text.WriteByte(byte('0' + i%10))
		}
		text.WriteString(`="1"`)
	}
	return text.String()
}

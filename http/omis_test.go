package gateway

import (
	"testing"

	"mirador/omis"
)

func TestOMISReplies(t *testing.T) {
	w := ask(t, one(), root, "POST", "/omis?tool=mine", " : version() ", "Content-Type", "application/x-www-form-urlencoded")
	expect(t, w, 200,
		`<reply><service index="0"><result status="0" name="OMIS_OK"></result></service>`,
		`<object>p_1</object><value type="string">mine: &lt;: version()&gt;</value><value type="integer">-7</value>`,
		`<value type="list"><value type="floating">1.5</value></value><value type="binary">AA==</value>`,
		`<result status="24" name="OMIS_UNKNOWN_OBJECT"><object>p_2</object><message>no p_2</message></result>`)
	w = ask(t, one(), root, "POST", "/omis", ": version()", "Accept", "text/plain;q=0.9")
	expect(t, w, 200, "notation of OMIS_OK")
}

// TestOMISFlags checks that all flags of OMIS 7.1.1 reach the backend, and that a buffered request has
// no reply yet.
func TestOMISFlags(t *testing.T) {
	b := one()
	for text, want := range map[string]omis.Flags{"": 0, "6": omis.DontReturnOK | omis.DontReturnEnDis, "0x31": omis.WaitForFirstReply | omis.BufferReplies | omis.Debug} {
		expect(t, ask(t, b, root, "POST", "/omis?flags="+text, ": version()"), 200)
		if b.flags != want {
			t.Errorf("flags=%s became %d", text, b.flags)
		}
	}
	expect(t, ask(t, b, root, "POST", "/omis?flags=8", ": version()"), 202)
	for _, text := range []string{"64", "-1", "DEBUG"} {
		expect(t, ask(t, b, root, "POST", "/omis?flags="+text, ": version()"), 400, "a sum of 1")
	}
}

func TestWhichTool(t *testing.T) {
	none, two := one(), one()
	none.apps = nil
	two.apps = append(two.apps, App{Name: "web"})
	expect(t, ask(t, one(), root, "POST", "/omis", ": version()"), 200, "mmul: ")
	expect(t, ask(t, none, root, "POST", "/omis", ": version()"), 200, DefaultTool+": ")
	expect(t, ask(t, two, root, "POST", "/omis", ": version()"), 409, "mmul, web")
	expect(t, ask(t, two, root, "POST", "/omis?tool=a/b", ": version()"), 400, "letters")
	expect(t, ask(t, one(), owner, "POST", "/omis", ": version()"), 403, "every process")
	expect(t, ask(t, one(), root, "DELETE", "/omis/tools/mmul", ""), 409, "DELETE /apps/mmul")
	expect(t, ask(t, one(), root, "DELETE", "/omis/tools/mine", ""), 404, "mine")
}

func TestTools(t *testing.T) {
	expect(t, ask(t, one(), root, "GET", "/omis/tools", "", "Accept", "application/json"), 200, `"name": "mine"`, `"streams": 1`, `"application": true`)
	expect(t, ask(t, one(), root, "GET", "/omis/tools", ""), 200, `<tool name="mmul" application="true" streams="0"`)
	expect(t, ask(t, one(), owner, "GET", "/omis/tools", ""), 403, "every process")
}

func TestPrototypes(t *testing.T) {
	expect(t, ask(t, one(), root, "POST", "/omis/prototypes", "int f(void);"), 204)
	expect(t, ask(t, one(), root, "POST", "/omis/prototypes?file=my.prototypes", "int f("), 422, "my.prototypes:1:1: int f(")
	expect(t, ask(t, one(), owner, "POST", "/omis/prototypes", "int f(void);"), 403, "every process")
	expect(t, ask(t, one(), &Caller{Name: "c", Role: Read, UID: -1, All: true}, "POST", "/omis/prototypes", "int f(void);"), 403)
}

func TestOMISRoles(t *testing.T) {
	b := one()
	for _, need := range []Role{Read, Control, Debug} {
		b.omisRole = need
		for _, has := range []Role{Read, Control, Debug} {
			c := &Caller{Name: "c", Role: has, UID: -1, All: true}
			want := 200
			if has < need {
				want = 403
			}
			if w := ask(t, b, c, "POST", "/omis", ": x()"); w.Code != want {
				t.Errorf("a caller with the role %s got %d for a request that requires %s", has, w.Code, need)
			}
		}
	}
}

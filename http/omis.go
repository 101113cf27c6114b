package gateway

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"mirador/omis"
)

// DefaultTool is the tool for requests without a tool's name if there is no application.
const DefaultTool = "http"

// anyTool is the name of a tool in a path that means the same as no name: see toolOf.
const anyTool = "-"

// toolName matches the names that are permitted in the path of a tool's replies.
var toolName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// toolHandlers answer OMIS requests and stream their replies.
type toolHandlers struct {
	*access
	bodyReader
	backend  Backend
	streams  *streams
	notation func(omis.Reply) string
}

// postOMIS sends an OMIS request. The body is the request, whatever its Content-Type.
func (h *toolHandlers) postOMIS(x *exchange) error {
	tool, err := h.toolOf(x, x.r.URL.Query().Get("tool"))
	if err != nil {
		return err
	}
	in := takeBuffer()
	defer giveBuffer(in)
	body, err := h.readBody(x, in)
	if err != nil {
		return err
	}
	flags, err := flagsOf(x.r.URL.Query().Get("flags"))
	if err != nil {
		return err
	}
	request := strings.TrimSpace(string(body))
	if err := admit(x.caller, h.backend.OMISRole(request)); err != nil {
		return err
	}
	reply, err := h.backend.OMIS(x.r.Context(), tool, request, flags)
	switch {
	case err != nil:
		return err
	case reply == nil: // the request is buffered, and its replies appear on the stream
		x.WriteHeader(http.StatusAccepted)
		return nil
	}
	return h.sendReply(x, reply)
}

// allFlags are the flags of OMIS 7.1.1.
const allFlags = omis.WaitForFirstReply | omis.DontReturnOK | omis.DontReturnEnDis |
	omis.BufferRequest | omis.BufferReplies | omis.Debug

// flagsOf reads the flags of a request: the sum of their numbers in OMIS 7.1.1.
func flagsOf(text string) (omis.Flags, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 0, 32)
	if flags := omis.Flags(n); err == nil && flags&^allFlags == 0 {
		return flags, nil
	}
	return 0, NewFault(http.StatusBadRequest, fmt.Sprintf(
		"flags=%s: the flags of a request are a sum of 1 (wait for the first reply, as is always done here), 2 (no replies that say OK alone), "+
			"4 (none for enabling and disabling), 8 (buffer the request), 16 (buffer its replies) and 32 (debug)", text))
}

// toolOf returns the tool of a request: the named one, or else that of the only application,
// or else DefaultTool. A request may name any process, so it is refused to callers who may
// not touch all processes.
func (h *toolHandlers) toolOf(x *exchange, name string) (string, error) {
	if !x.caller.All {
		return "", NewFault(http.StatusForbidden, fmt.Sprintf(
			"OMIS requests may name every process, and %s may touch its own ones only: use MIR documents, or run your own gateway", x.caller.Name))
	}
	if name == "" || name == anyTool {
		return h.onlyTool()
	}
	if !toolName.MatchString(name) {
		return "", NewFault(http.StatusBadRequest, fmt.Sprintf(
			"%q cannot be the name of a tool: use up to 64 letters, digits, '.', '_' and '-'", name))
	}
	return name, nil
}

func (h *toolHandlers) onlyTool() (string, error) {
	apps := h.backend.Apps()
	switch len(apps) {
	case 0:
		return DefaultTool, nil
	case 1:
		return apps[0].Name, nil
	}
	return "", NewFault(http.StatusConflict, fmt.Sprintf(
		"there are %d applications, each with a tool of its own; %s: choose one with ?tool=NAME, or with \"mirador omis --tool NAME\"", len(apps), nameApps(apps)))
}

func (h *toolHandlers) sendReply(x *exchange, reply omis.Reply) error {
	if accepts(x.r, "text/plain") {
		send(x, http.StatusOK, typeText, []byte(h.notation(reply)))
		return nil
	}
	out := takeBuffer()
	defer giveBuffer(out)
	WriteReply(out, reply)
	send(x, http.StatusOK, typeXML, out.Bytes())
	return nil
}

func (h *toolHandlers) streamReplies(x *exchange) error {
	tool, err := h.toolOf(x, x.param("tool"))
	if err != nil {
		return err
	}
	done, err := h.streams.take(x.caller)
	if err != nil {
		return err
	}
	defer done()
	after, err := lastEvent(x.r)
	if err != nil {
		return err
	}
	replies, cancel, err := h.backend.Replies(tool, after)
	if err != nil {
		return err
	}
	defer cancel()
	print := func(out *bytes.Buffer, r StreamedReply) error {
		// An event without data transfers its id only.
		if r.Reply != nil {
			WriteReply(out, r.Reply)
		}
		return nil
	}
	switch x.r.URL.Query().Get("format") {
	case "text":
		print = func(out *bytes.Buffer, r StreamedReply) error {
			_, err := out.WriteString(h.notation(r.Reply))
			return err
		}
	case "base64":
		// Binary data may contain the bytes that end a line of the stream.
		print = func(out *bytes.Buffer, r StreamedReply) error {
			_, err := out.WriteString(base64.StdEncoding.EncodeToString([]byte(h.notation(r.Reply))))
			return err
		}
	}
	return streamEvents(h.streams.ending, x, events[StreamedReply]{name: "reply", source: replies, id: func(r StreamedReply) uint64 { return r.ID }, print: print})
}

// lastEvent returns the id of the last event that a returning reader received, from the header
// of server-sent events or from ?after=ID; 0 if there is none.
func lastEvent(r *http.Request) (uint64, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil || id == 0 || id == math.MaxUint64 {
		return 0, NewFault(http.StatusBadRequest, fmt.Sprintf("%q is no id of an event of this stream (Last-Event-ID, or ?after=ID): take that of the last event you had", text))
	}
	return id, nil
}

// listTools lists the tools for which a caller can send requests.
func (h *toolHandlers) listTools(x *exchange) error {
	if !x.caller.All {
		return NewFault(http.StatusForbidden, "OMIS requests may name every process, so only root and the gateway's user see the tools that send them")
	}
	return sendTable(x, "tools", "tool", h.backend.Tools())
}

// finalize ends a tool with its conditional requests and its scope. The tool of an application
// ends with the application.
func (h *toolHandlers) finalize(x *exchange) error {
	tool, err := h.toolOf(x, x.param("tool"))
	if err != nil {
		return err
	}
	for _, app := range h.backend.Apps() {
		if app.Name == tool {
			return NewFault(http.StatusConflict, fmt.Sprintf("%s is the tool of an application: release that (DELETE /apps/%s)", tool, tool))
		}
	}
	if err := h.backend.Finalize(tool); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

// postPrototypes adds prototypes of library functions, for all tools.
func (h *toolHandlers) postPrototypes(x *exchange) error {
	if _, err := h.toolOf(x, DefaultTool); err != nil {
		return err
	}
	in := takeBuffer()
	defer giveBuffer(in)
	body, err := h.readBody(x, in)
	if err != nil {
		return err
	}
	name := x.r.URL.Query().Get("file")
	if name == "" {
		name = "prototypes"
	}
	if err := h.backend.Describe(name, string(body)); err != nil {
		return err
	}
	x.WriteHeader(http.StatusNoContent)
	return nil
}

package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/callreel/callreel/crash"
	"github.com/callreel/callreel/internal/safejson"
)

// The objects of crash --json; the keys are promised.
type (
	crashHead struct {
		Format  string       `json:"format"`
		OS      string       `json:"os"`
		Version string       `json:"os_version"`
		Arch    string       `json:"arch"`
		Time    string       `json:"time,omitempty"`
		PID     int          `json:"pid"`
		Name    string       `json:"name"`
		Path    string       `json:"path"`
		Reason  string       `json:"reason"`
		More    crashReason  `json:"reason_parts"`
		Details []string     `json:"details"`
		Code    []crashCode  `json:"code"`
		Missing []crashImage `json:"missing"`
		Notes   []crashNote  `json:"annotations,omitempty"`
	}
	crashNote struct {
		Module string `json:"module,omitempty"`
		Name   string `json:"name,omitempty"`
		Value  string `json:"value"`
	}
	crashReason struct {
		Signal  string `json:"signal"`
		Code    string `json:"code"`
		Address string `json:"address,omitempty"`
	}
	crashCode struct {
		Address string `json:"address"`
		Bytes   string `json:"bytes"`
		Text    string `json:"text"`
		At      bool   `json:"pc,omitempty"`
	}
	crashImage struct {
		ID    string `json:"id"`
		Code  string `json:"code_id,omitempty"`
		Path  string `json:"path"`
		Debug string `json:"debug_file,omitempty"`
		Load  string `json:"load"`
		Size  uint64 `json:"size"`
		Arch  string `json:"arch,omitempty"`
		Found bool   `json:"found"`
		Used  bool   `json:"used"`
		File  string `json:"file,omitempty"`
		Why   string `json:"reason,omitempty"`
	}
	crashThread struct {
		TID       uint64            `json:"tid"`
		Name      string            `json:"name"`
		State     string            `json:"state,omitempty"`
		Crashed   bool              `json:"crashed"`
		Registers map[string]string `json:"registers"`
		End       string            `json:"end"`
		EndSays   string            `json:"end_says,omitempty"`
		Frames    []crashFrame      `json:"frames"`
	}
	crashFrame struct {
		framePlace
		Linkage string `json:"linkage_name,omitempty"`
		By      string `json:"by"`
		Rule    string `json:"rule,omitempty"`
		SP      string `json:"sp,omitempty"`
		Kind    string `json:"kind,omitempty"` // "signal": the code that a handler returns to
		Exact   bool   `json:"interrupted,omitempty"`
		Said    bool   `json:"named_by_report,omitempty"`
		Reason  string `json:"reason,omitempty"` // why there is no name
	}
)

func crashJSON(w io.Writer, r *crash.Report) error {
	b := bufio.NewWriter(w)
	head := crashHead{
		Format: string(r.Format), OS: r.OS, Version: r.Version, Arch: r.Arch, Time: r.Time, PID: r.Process.PID, Name: r.Process.Name, Path: r.Process.Path,
		Reason: r.Reason.Text, More: crashReason{Signal: r.Reason.Signal, Code: r.Reason.Code}, Details: r.Reason.Details,
		Code: []crashCode{}, Missing: []crashImage{},
	}
	if head.Details == nil {
		head.Details = []string{}
	}
	if r.Reason.Has {
		head.More.Address = hexadecimal(r.Reason.Address)
	}
	for _, in := range r.Code {
		head.Code = append(head.Code, crashCode{hexadecimal(in.Address), hex.EncodeToString(in.Bytes), in.Text, in.At})
	}
	for _, im := range r.Missing() {
		head.Missing = append(head.Missing, crashImageJSON(im))
	}
	for _, a := range r.Annotations {
		head.Notes = append(head.Notes, crashNote(a))
	}
	text, err := safejson.Marshal(head)
	if err != nil {
		return err
	}
	b.Write(text[:len(text)-1]) // images and threads follow, which may be many
	b.WriteString(",\n")
	if err := jsonList(b, "images", len(r.Images), func(i int) any { return crashImageJSON(r.Images[i]) }); err != nil {
		return err
	}
	b.WriteString(",\n")
	if err := jsonList(b, "threads", len(r.Threads), func(i int) any { return crashThreadJSON(r.Threads[i]) }); err != nil {
		return err
	}
	b.WriteString("\n}\n")
	return b.Flush()
}

func crashImageJSON(im *crash.Image) crashImage {
	return crashImage{
		ID: im.ID, Code: im.CodeID, Path: im.Path, Debug: im.DebugFile, Load: hexadecimal(im.Load), Size: im.Size, Arch: im.Arch,
		Found: im.Found, Used: im.Used, File: im.File, Why: im.Why,
	}
}

func crashThreadJSON(t *crash.Thread) crashThread {
	out := crashThread{
		TID: t.TID, Name: t.Name, State: t.State, Crashed: t.Crashed, Registers: map[string]string{},
		End: t.End, EndSays: t.EndSays, Frames: make([]crashFrame, len(t.Frames)),
	}
	for _, reg := range t.Registers {
		out.Registers[reg.Name] = hexadecimal(reg.Value)
	}
	for k := range t.Frames {
		f := &t.Frames[k]
		j := crashFrame{
			framePlace: framePlace{Address: hexadecimal(f.Address), Function: f.Function, File: f.File, Line: f.Line, Inlined: f.Inlined},
			Linkage:    f.Linkage, By: string(f.By), Rule: f.Rule, Exact: f.Exact && k > 0, Said: f.Said, Reason: f.Why,
		}
		if f.Image != nil {
			j.Image, j.Offset = f.Image.Path, fmt.Sprintf("%#x", f.Offset)
		}
		if f.SP != 0 {
			j.SP = hexadecimal(f.SP)
		}
		if f.Signal {
			j.Kind = "signal"
		}
		out.Frames[k] = j
	}
	return out
}

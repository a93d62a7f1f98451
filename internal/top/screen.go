package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/term"
)

// framesPerSecond bounds how often the terminal is written: fast enough for keys to feel immediate,
// and no faster, because each frame costs CPU time.
const framesPerSecond = 10

// screen connects a state to bubbletea. It lays out the text when the state changes, not each time
// bubbletea asks.
type screen struct {
	state         *State
	colour        bool
	width, height int
	text          string

	mu      sync.Mutex
	watched string // the interface whose counters are needed
	listens bool   // the connections are needed
}

func (s *screen) Init() tea.Cmd { return nil }

// Update handles a message: a key, a size, or a change of the state.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		if msg.String() == "ctrl+z" {
			if canSuspend() {
				return s, tea.Suspend
			}
			return s, nil
		}
		if s.state.Key(msg.String()) {
			return s, tea.Quit
		}
		s.mu.Lock()
		s.watched, s.listens = s.state.Watched(), s.state.Listening()
		s.mu.Unlock()
	case tea.PasteMsg:
		for _, r := range msg.Content {
			if s.state.typing {
				s.state.Key(string(r))
			}
		}
	case func(*State):
		msg(s.state)
	default:
		return s, nil
	}
	s.draw()
	return s, nil
}

func (s *screen) draw() {
	var b strings.Builder
	for i, l := range s.state.Lines(s.width, s.height) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(l.ANSI(s.colour))
	}
	s.text = b.String()
}

func (s *screen) View() tea.View {
	return tea.View{Content: s.text, AltScreen: true}
}

// Terminal is where the screen is shown.
type Terminal struct {
	In          io.Reader
	Out         io.Writer
	Environment []string
	Colour      bool
}

// Handle lets any goroutine reach the screen.
type Handle struct {
	ctx     context.Context
	program *tea.Program
	screen  *screen
	quit    func()

	mu       sync.Mutex
	failed   []error
	panicked []string
}

// Change changes the state and redraws the screen. It waits for a busy screen, and returns false
// when the screen is gone.
func (h *Handle) Change(change func(*State)) bool {
	h.program.Send(change)
	return h.ctx.Err() == nil
}

// Watched is the interface whose counters are wanted; empty: none.
func (h *Handle) Watched() string {
	h.screen.mu.Lock()
	defer h.screen.mu.Unlock()
	return h.screen.watched
}

// Listening reports whether the connections are wanted.
func (h *Handle) Listening() bool {
	h.screen.mu.Lock()
	defer h.screen.mu.Unlock()
	return h.screen.listens
}

// run does work. Work that fails ends the screen. So does work that panics; the panic continues
// when the terminal is restored, because a program that dies at once would leave a terminal without
// echo.
func (h *Handle) run(work func(context.Context, *Handle) error) {
	defer func() {
		if r := recover(); r != nil {
			h.mu.Lock()
			h.panicked = append(h.panicked, fmt.Sprintf("%v\n%s", r, debug.Stack()))
			h.mu.Unlock()
			h.quit()
		}
	}()
	if err := work(h.ctx, h); err != nil && h.ctx.Err() == nil {
		h.mu.Lock()
		h.failed = append(h.failed, err)
		h.mu.Unlock()
		h.quit()
	}
}

// patience is how long it may take to restore a terminal.
const patience = 3 * time.Second

var errStuck = errors.New("the terminal takes nothing more")

// runUntil runs a program. When ctx ends and the terminal accepts no output, as over a dead
// connection, runUntil does not wait for it: it restores the terminal's settings and leaves the
// screen as it is.
//
// abandon ends the context of the program, which closes its input while it may still read. It is
// for a program that is stuck.
func runUntil(ctx context.Context, t Terminal, program *tea.Program, abandon func()) error {
	var before *term.State
	in, _ := t.In.(*os.File)
	if in != nil {
		before, _ = term.GetState(int(in.Fd())) // a stream that is not a terminal has no state
	}
	ended := make(chan error, 1)
	go func() {
		_, err := program.Run()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Quit waits if the program is busy with its terminal, so it runs beside.
	go program.Quit()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
	}
	abandon() // lets go of the works that send to it
	if before != nil {
		return errors.Join(errStuck, term.Restore(int(in.Fd()), before))
	}
	return errStuck
}

// presentSize returns a filter that gives each message of a size the terminal's size at this
// moment. Bubbletea asks for it and sends it in separate goroutines, one at the start and one for
// each SIGWINCH, so that an old size can arrive last and stay.
func presentSize(t Terminal) func(tea.Model, tea.Msg) tea.Msg {
	return func(_ tea.Model, msg tea.Msg) tea.Msg {
		out, terminal := t.Out.(interface{ Fd() uintptr })
		if _, size := msg.(tea.WindowSizeMsg); !size || !terminal {
			return msg
		}
		if width, height, err := term.GetSize(int(out.Fd())); err == nil && width > 0 && height > 0 {
			return tea.WindowSizeMsg{Width: width, Height: height}
		}
		return msg
	}
}

// page is a terminal's output that sets the scrolling region (DECSTBM) to the whole screen whenever
// the renderer erases it, as it does after a resize. The renderer ends each scrolling of a region
// with margins at the first and the last line that it knows. A terminal that has grown meanwhile
// keeps these, and every longer page would then scroll within them.
type page struct{ terminalFile }

// terminalFile is what bubbletea asks of a terminal.
type terminalFile interface {
	io.ReadWriteCloser
	Fd() uintptr
}

// Write writes a frame. Erasing the screen and setting margins both leave the cursor at home, where
// the renderer has put it.
func (p page) Write(frame []byte) (int, error) {
	const eraseScreen, wholeScreen = "\x1b[2J", "\x1b[r"
	if _, err := p.terminalFile.Write(bytes.ReplaceAll(frame, []byte(eraseScreen),
		[]byte(wholeScreen+eraseScreen))); err != nil {
		return 0, err
	}
	return len(frame), nil
}

// Show draws a state until the user quits or ctx ends, neither of which is an error; then it
// restores the terminal. Each of works runs in a goroutine of its own, and must return when its
// context ends.
func Show(ctx context.Context, t Terminal, state *State, works ...func(context.Context, *Handle) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &screen{state: state, colour: t.Colour, watched: state.Watched()}
	// The caller handles signals: they end ctx.
	lasting, abandon := context.WithCancel(context.WithoutCancel(ctx))
	defer abandon()
	out := t.Out
	if file, ok := out.(terminalFile); ok {
		out = page{file}
	}
	program := tea.NewProgram(s, tea.WithContext(lasting), tea.WithInput(t.In), tea.WithOutput(out),
		tea.WithEnvironment(t.Environment), tea.WithFilter(presentSize(t)),
		tea.WithFPS(framesPerSecond), tea.WithoutSignalHandler())
	h := &Handle{ctx: ctx, program: program, screen: s, quit: cancel}
	var group sync.WaitGroup
	for _, work := range works {
		group.Go(func() { h.run(work) })
	}
	err := runUntil(ctx, t, program, abandon)
	if ctx.Err() != nil && !errors.Is(err, tea.ErrProgramPanic) && !errors.Is(err, errStuck) {
		err = nil // the caller ended it
	}
	cancel()
	group.Wait()
	if len(h.panicked) > 0 {
		panic(h.panicked[0])
	}
	if err != nil {
		err = fmt.Errorf("show the live view: %w", err)
	}
	return errors.Join(append(h.failed, err)...)
}

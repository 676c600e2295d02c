// Macros that a program may have from system headers before it includes pdp. check.cmake includes this file after the headers of other
// libraries and before pdp's: any use of one of these names as an identifier in pdp is then a syntax error.
//
// pdp does not guard against <term.h>, which defines some 400 words such as `lines`, `columns` and `bell`.
#pragma once

// <complex.h>
#undef I
#define I (__extension__ 1.0iF)

// <curses.h>. In C++ it undefines box, clear, erase, move and refresh itself.
#undef timeout
#define timeout(...) 0L
#define addch(...) 0L
#define addstr(...) 0L
#define attrset(...) 0L
#define bkgd(...) 0L
#define border(...) 0L
#define clrtobot(...) 0L
#define clrtoeol(...) 0L
#define delch(...) 0L
#define deleteln(...) 0L
#define echochar(...) 0L
#define getch(...) 0L
#define getstr(...) 0L
#define getyx(...) 0L
#define hline(...) 0L
#define inch(...) 0L
#define insch(...) 0L
#define insertln(...) 0L
#define instr(...) 0L
#define redrawwin(...) 0L
#define scrl(...) 0L
#define scroll(...) 0L
#define setscrreg(...) 0L
#define standend(...) 0L
#define standout(...) 0L
#define touchline(...) 0L
#define touchwin(...) 0L
#define vline(...) 0L
#undef ERR
#undef OK
#define ERR (-1)
#define OK (0)

// <sys/sysmacros.h>, <sys/param.h>
#undef major
#undef makedev
#undef minor
#define major(dev) 0L
#define makedev(maj, min) 0L
#define minor(dev) 0L
#undef MAX
#undef MIN
#undef NBBY
#undef clrbit
#undef howmany
#undef isclr
#undef isset
#undef powerof2
#undef roundup
#undef setbit
#define MAX(...) 0L
#define MIN(...) 0L
#define NBBY 8
#define clrbit(...) 0L
#define howmany(...) 0L
#define isclr(...) 0L
#define isset(...) 0L
#define powerof2(...) 0L
#define roundup(...) 0L
#define setbit(...) 0L

// Predefined by the compiler with -std=gnu++20
#undef i386
#undef linux
#undef unix
#define i386 1
#define linux 1
#define unix 1

// <X11/X.h>, <X11/Xlib.h>, <X11/Xutil.h>
#define Above 0
#define AllocAll 1
#define AllocNone 0
#define Always 2
#define AnyKey 0L
#define Below 1
#define Bool int
#define Button1 1
#define ButtonPress 4
#define CirculateNotify 26
#define ClientMessage 33
#define Complex 0
#define ConfigureNotify 22
#define Convex 2
#define CoordModeOrigin 0
#define CopyFromParent 0L
#define CreateNotify 16
#define CurrentTime 0L
#define CursorShape 0
#define DestroyNotify 17
#define DirectColor 5
#define DisableAccess 0
#define EnableAccess 1
#define EnterNotify 7
#define Expose 12
#define False 0
#define FillSolid 0
#define FocusIn 9
#define FocusOut 10
#define GenericEvent 35
#define GrabSuccess 0
#define GrayScale 1
#define InputFocus 1L
#define InputOnly 2
#define InputOutput 1
#define KeyPress 2
#define KeyRelease 3
#define LASTEvent 36
#define LeaveNotify 8
#define MapNotify 19
#define MotionNotify 6
#define NoExpose 14
#define NoSymbol 0L
#define Nonconvex 1
#define None 0L
#define NotUseful 0
#define Opposite 4
#define ParentRelative 1L
#define PropertyNotify 28
#define PseudoColor 3
#define RetainPermanent 1
#define RevertToNone 0
#define SelectionNotify 31
#define StaticColor 2
#define StaticGray 0
#define Status int
#define Success 0
#define True 1
#define TrueColor 4
#define UnmapNotify 18
#define Unsorted 0
#define WhenMapped 1
#define WindingRule 1
#define XYPixmap 1
#define ZPixmap 2

// Qt without QT_NO_KEYWORDS
#define emit
#define foreach(...) 0L
#define forever for (;;)
#define signals public
#define slots

// Other libraries and user programs
#undef ABS
#undef CHECK
#undef CLAMP
#undef DEBUG
#undef ERROR
#undef FALSE
#undef IN
#undef INFO
#undef LOG
#undef OUT
#undef TEST
#undef TRUE
#undef WARNING
#undef likely
#undef unlikely
#define ABS(...) 0L
#define CHECK(...) 0L
#define CLAMP(...) 0L
#define DEBUG 1
#define ERROR 0
#define FALSE 0
#define IN
#define INFO 0
#define LOG(...) 0L
#define OUT
#define TEST(...) 0L
#define TRUE 1
#define WARNING 1
#define likely(...) 0L
#define unlikely(...) 0L

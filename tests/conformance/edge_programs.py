"""The programs of test_as_eager.py, by what is at its edge in them.

Each line is a program: statements, and after the last `;;` the result. `D` is the device; `T`, `Z`, `O` and `A` make tensors
on it: of given numbers, of zeros, of ones, and counting; `NAN` is what is no number.
"""

PROGRAMS = {
    "images of integers": """
        F.interpolate(A(16,dtype=torch.uint8).view(1,1,4,4), scale_factor=2, mode="nearest")
        F.interpolate(A(16,dtype=torch.uint8).view(1,1,4,4), size=(3,5), mode="nearest-exact")
        F.interpolate(A(16,dtype=torch.uint8).view(1,1,16), size=(9,), mode="nearest")
        F.interpolate(A(16,dtype=torch.uint8).view(1,1,16), size=(9,), mode="nearest-exact")
        F.interpolate(A(64,dtype=torch.uint8).view(1,1,4,4,4), size=(3,5,6), mode="nearest")
        F.interpolate(A(64,dtype=torch.uint8).view(1,1,4,4,4), size=(3,5,6), mode="nearest-exact")
        F.interpolate(A(16,dtype=torch.uint8).view(1,1,16), size=(7,), mode="linear")
        F.interpolate(A(64,dtype=torch.uint8).view(1,1,4,4,4), size=(3,5,6), mode="trilinear")
        F.interpolate((A(240)*37%256).to(torch.uint8).view(2,3,5,8), size=(7,5), mode="bilinear")
        F.interpolate((A(240)*37%256).to(torch.uint8).view(2,3,5,8), size=(3,12), mode="bilinear", align_corners=True)
        F.interpolate((A(240)*37%256).to(torch.uint8).view(2,3,5,8), scale_factor=1.1, mode="bilinear")
        F.interpolate((A(240)*37%256).to(torch.uint8).view(2,3,5,8), size=(5,8), mode="bicubic")
        F.interpolate((A(240)*37%256).to(torch.uint8).view(2,3,5,8), size=(9,5), mode="bicubic")
        F.interpolate((A(240)*37%256).to(torch.uint8).view(2,3,5,8), size=(2,16), mode="bilinear", antialias=True)
        F.interpolate((A(240)*37%256).to(torch.uint8).view(2,3,5,8), size=(3,3), mode="bicubic", antialias=True)
        F.interpolate((A(400)*37%256).to(torch.uint8).view(2,5,5,8), size=(3,3), mode="bicubic", antialias=True)
        F.interpolate((A(4800)*37%256).to(torch.uint8).view(1,3,40,40), size=(3,70), mode="bicubic", antialias=True)
        F.interpolate((A(240)*37%256).to(torch.uint8).view(2,3,5,8), scale_factor=(1.1,1.5), mode="bilinear", antialias=True)
        F.interpolate((A(240.)*37%256).view(2,3,5,8), scale_factor=(1.5,1.05), mode="bilinear", antialias=True)
        F.interpolate((A(240.)*37%256).view(2,3,5,8), scale_factor=1.1, mode="bicubic", antialias=True)
        x=(A(25.)*37%256).view(1,1,5,5).requires_grad_();; (F.interpolate(x, scale_factor=1.1, mode="bilinear", antialias=True)*A(25.).view(5,5)).sum().backward();; x.grad
        F.interpolate(T([1.,float("inf"),2,3]).view(1,1,2,2), size=(2,2), mode="bilinear", antialias=True)
        F.interpolate(T([0.,1,2,3,4,float("inf")]).view(1,1,6), size=7, mode="linear", align_corners=True)
        F.interpolate(T([0.,1,2,3,4,float("inf")]).view(1,1,6), size=4, mode="linear")
        F.interpolate((A(4800)*37%256).to(torch.uint8).view(1,3,40,40), size=(2,3), mode="bicubic", antialias=True)
        x=(A(3600.)*37%256).view(1,1,60,60);; x[0,0,30,31]=NAN;; F.interpolate(x, size=(5,40), mode="bicubic", antialias=True)
        x=(A(3600.)*37%256).view(1,1,60,60);; x[0,0,30,31]=float("inf");; F.interpolate(x, size=(4,7), mode="bilinear", antialias=True)
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(4,4), mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        x=A(16.).view(1,1,4,4).requires_grad_();; torch.autograd.grad(F.interpolate(x, size=(4,4), mode="bicubic"), x, A(16.).index_fill(0,T([0]),float("inf")).view(1,1,4,4))
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(4,4), align_corners=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(4,4), antialias=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(8,8), mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(8,8), align_corners=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(8,8), antialias=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(3,5), mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(3,5), align_corners=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(7,6), mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(7,6), align_corners=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(7,6), antialias=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(2,2), mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(2,2), align_corners=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(2,2), antialias=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(5,5), mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(5,5), align_corners=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        [F.interpolate(A(25.).index_fill(0,T([i]),v).view(1,1,5,5), size=(5,5), antialias=True, mode="bicubic") for i in (0, 6, 12, 16, 24) for v in (NAN, float("inf"), -float("inf"))]
        F.interpolate(A(16,dtype=torch.int32).view(1,1,4,4), size=(7,7), mode="nearest")
        F.interpolate(A(16,dtype=torch.int64).view(1,1,4,4), size=(7,7), mode="nearest")
        F.interpolate(A(16,dtype=torch.int8).view(1,1,4,4), size=(7,7), mode="bilinear", antialias=True)
        F.interpolate(A(16,dtype=torch.int32).view(1,1,4,4), size=(3,3), mode="bicubic", antialias=True)
        F.interpolate(A(16,dtype=torch.bool).view(1,1,4,4), size=(3,3), mode="bicubic", antialias=True)
    """,
    "infinities in Fourier transforms": """
        [torch.view_as_real(torch.fft.rfft(A(1.).index_fill(0,T([0]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(1.),A(1.)+1).index_fill(0,T([0]),v))) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(2.).index_fill(0,T([0]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(2.),A(2.)+1).index_fill(0,T([0]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(2.),A(2.)+1).index_fill(0,T([0]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(2.).index_fill(0,T([1]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(2.),A(2.)+1).index_fill(0,T([1]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(2.),A(2.)+1).index_fill(0,T([1]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(3.).index_fill(0,T([0]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(3.),A(3.)+1).index_fill(0,T([0]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(3.),A(3.)+1).index_fill(0,T([0]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(3.).index_fill(0,T([1]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(3.),A(3.)+1).index_fill(0,T([1]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(3.),A(3.)+1).index_fill(0,T([1]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(3.).index_fill(0,T([2]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(3.),A(3.)+1).index_fill(0,T([2]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(3.),A(3.)+1).index_fill(0,T([2]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(4.).index_fill(0,T([0]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(4.),A(4.)+1).index_fill(0,T([0]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(4.),A(4.)+1).index_fill(0,T([0]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(4.).index_fill(0,T([1]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(4.),A(4.)+1).index_fill(0,T([1]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(4.),A(4.)+1).index_fill(0,T([1]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(4.).index_fill(0,T([2]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(4.),A(4.)+1).index_fill(0,T([2]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(4.),A(4.)+1).index_fill(0,T([2]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(4.).index_fill(0,T([3]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(4.),A(4.)+1).index_fill(0,T([3]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(4.),A(4.)+1).index_fill(0,T([3]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(5.).index_fill(0,T([0]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(5.),A(5.)+1).index_fill(0,T([0]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(5.),A(5.)+1).index_fill(0,T([0]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(5.).index_fill(0,T([1]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(5.),A(5.)+1).index_fill(0,T([1]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(5.),A(5.)+1).index_fill(0,T([1]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(5.).index_fill(0,T([2]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(5.),A(5.)+1).index_fill(0,T([2]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(5.),A(5.)+1).index_fill(0,T([2]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(5.).index_fill(0,T([4]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(5.),A(5.)+1).index_fill(0,T([4]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(5.),A(5.)+1).index_fill(0,T([4]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(6.).index_fill(0,T([0]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(6.),A(6.)+1).index_fill(0,T([0]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(6.),A(6.)+1).index_fill(0,T([0]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(6.).index_fill(0,T([1]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(6.),A(6.)+1).index_fill(0,T([1]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(6.),A(6.)+1).index_fill(0,T([1]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(6.).index_fill(0,T([3]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(6.),A(6.)+1).index_fill(0,T([3]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(6.),A(6.)+1).index_fill(0,T([3]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(6.).index_fill(0,T([5]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(6.),A(6.)+1).index_fill(0,T([5]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(6.),A(6.)+1).index_fill(0,T([5]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(7.).index_fill(0,T([0]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(7.),A(7.)+1).index_fill(0,T([0]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(7.),A(7.)+1).index_fill(0,T([0]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(7.).index_fill(0,T([1]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(7.),A(7.)+1).index_fill(0,T([1]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(7.),A(7.)+1).index_fill(0,T([1]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(7.).index_fill(0,T([3]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(7.),A(7.)+1).index_fill(0,T([3]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(7.),A(7.)+1).index_fill(0,T([3]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(7.).index_fill(0,T([6]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(7.),A(7.)+1).index_fill(0,T([6]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(7.),A(7.)+1).index_fill(0,T([6]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(8.).index_fill(0,T([0]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(8.),A(8.)+1).index_fill(0,T([0]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(8.),A(8.)+1).index_fill(0,T([0]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(8.).index_fill(0,T([1]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(8.),A(8.)+1).index_fill(0,T([1]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(8.),A(8.)+1).index_fill(0,T([1]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(8.).index_fill(0,T([4]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(8.),A(8.)+1).index_fill(0,T([4]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(8.),A(8.)+1).index_fill(0,T([4]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        [torch.view_as_real(torch.fft.rfft(A(8.).index_fill(0,T([7]),v))) for v in (NAN, float("inf"), -float("inf"))]
        [torch.view_as_real(torch.fft.fft(torch.complex(A(8.),A(8.)+1).index_fill(0,T([7]),v))) for v in (NAN, float("inf"))]
        [f(torch.complex(A(8.),A(8.)+1).index_fill(0,T([7]),v)) for f in (torch.fft.irfft, torch.fft.hfft) for v in (NAN, float("inf"))]
        x=A(80.).view(10,8);; x[3,1]=float("inf");; x[3,4]=NAN;; x[9,0]=-float("inf");; (torch.view_as_real(torch.fft.rfft(x)), torch.view_as_real(torch.fft.fft(x)))
        x=A(80.).view(8,10);; x[1,3]=float("inf");; x[4,3]=NAN;; x[0,9]=-float("inf");; (torch.view_as_real(torch.fft.rfft(x, dim=0)), torch.view_as_real(torch.fft.fft(x, dim=0)))
        x=A(200.).view(40,5).to(torch.complex128);; x[7,1]=float("inf");; x[39,3]=NAN;; (torch.view_as_real(torch.fft.fft(x)), torch.fft.irfft(x, 8), torch.fft.irfft(x, 7), torch.fft.irfft(x, 8, norm="ortho"))
        x=T([float("inf"),-float("inf"),1.,2.]);; torch.view_as_real(torch.fft.rfft(x))
        x=T([float("inf")]*4);; torch.fft.rfft(x)[0].real
    """,
    "infinities in inverse Fourier transforms": """
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(2.),A(2.)+1).index_fill(0,T([0]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(2.),A(2.)+1).index_fill(0,T([1]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(3.),A(3.)+1).index_fill(0,T([0]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(3.),A(3.)+1).index_fill(0,T([1]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(3.),A(3.)+1).index_fill(0,T([2]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(4.),A(4.)+1).index_fill(0,T([0]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(4.),A(4.)+1).index_fill(0,T([1]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(4.),A(4.)+1).index_fill(0,T([3]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(5.),A(5.)+1).index_fill(0,T([0]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(5.),A(5.)+1).index_fill(0,T([1]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(5.),A(5.)+1).index_fill(0,T([4]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(8.),A(8.)+1).index_fill(0,T([0]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(8.),A(8.)+1).index_fill(0,T([1]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
        [torch.view_as_real(torch.fft.ifft(torch.complex(A(8.),A(8.)+1).index_fill(0,T([7]),v), norm=norm)) for v in (NAN, float("inf")) for norm in ("forward", "backward", "ortho")]
    """,
    "NaN left out of sums": """
        torch.nansum(T([1.5,1.5,NAN,-3.9]), dtype=torch.int64)
        torch.nansum(T([[1.5,1.5,NAN],[300.7,NAN,-1.5]]), 1, dtype=torch.int32)
        torch.nansum(T([[1.5,1.5,NAN],[200.7,NAN,1.5]]), 0, keepdim=True, dtype=torch.uint8)
        torch.nansum(T([NAN,1.5,2.7], dtype=torch.bfloat16), dtype=torch.int8)
        torch.nansum(T([NAN,0.]), dtype=torch.bool)
        torch.nansum(T([NAN,1.5]), 0, out=Z((),dtype=torch.int64))
        torch.nansum(T([NAN,1.5]), 0, out=Z((),dtype=torch.bool))
        torch.nansum(T([NAN,1.5]), 0, dtype=torch.int64, out=Z((),dtype=torch.int64))
        torch.nansum(T([1,2]), 0, out=Z((),dtype=torch.int32))
        torch.nansum(T([NAN,1.5]), 0, out=Z((),dtype=torch.float64))
        torch.nansum(T([1.,NAN]), dtype=torch.complex64)
    """,
    "memory of tensors that change their size": """
        x=A(6.);; x.resize_(2);; x.resize_(6);; x
        x=A(6.).view(2,3);; x.resize_(2);; x.add_(1);; x.resize_(3,2);; x
        x=A(6.);; y=x.view(2,3);; y.resize_(2);; y.add_(10);; x
        x=A(6.)[2:];; x.resize_(2,2);; x
        x=A(6.)[2:4];; x.resize_(4);; x
        x=A(6.)[2:4];; x.resize_(1);; x.storage_offset()
        x=A(6.);; x.resize_(3,3);; x.view(-1)[:6]
        x=A(6.)[2:];; x.resize_(3,3);; x.view(-1)[:4]
        x=A(6.).view(2,3).t();; x.resize_(6);; x
        x=A(6.).view(2,3).t();; x.resize_(2,2);; x
        x=A(4.).view(torch.int32);; x.resize_(2);; x.resize_(4);; x
        x=A(12.).view(1,3,2,2).contiguous(memory_format=torch.channels_last);; x.resize_(12);; x
        x=A(6.);; x.resize_(0);; x.resize_(2,3);; x
        x=A(6.);; x.resize_as_(Z(2));; x.resize_as_(Z(3,2));; x
    """,
    "types of draws": """
        F.dropout(T([1,2]), p=1.)
        F.dropout(T([True,False]), p=1.)
        F.dropout(T([1.,float("inf")]), p=1.)
        F.dropout(T([1,2]), p=0.5)
        torch.randn(0, dtype=torch.uint8, device=D)
        torch.randn(2, dtype=torch.uint8, device=D)
        Z(0,dtype=torch.int64).normal_()
        Z(0,dtype=torch.bool).exponential_()
        Z(0,dtype=torch.complex64).geometric_(0.5)
        Z(0,dtype=torch.int64).log_normal_()
        Z(0,dtype=torch.complex64).bernoulli_(0.5)
        Z(0,dtype=torch.int64).normal_(0,-1)
    """,
    "types without an order": """
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,1]), O(2,dtype=torch.complex64), "amax")
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,1]), O(2,dtype=torch.complex64), "amin", include_self=False)
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,1]), O(2,dtype=torch.complex64), "prod")
        O(3,dtype=torch.complex64).index_reduce(0, T([0,1]), O(2,dtype=torch.complex64), "amax")
        O(3,dtype=torch.complex64).index_reduce(0, T([0,1]), O(2,dtype=torch.complex64), "mean")
        O(3,dtype=torch.bool).index_reduce(0, T([0,1]), O(2,dtype=torch.bool), "amin")
        O(3,dtype=torch.bool).index_reduce(0, T([0,1]), O(2,dtype=torch.bool), "prod")
        Z(3,2,dtype=torch.bool).index_reduce(0, T([0,1]), O(2,2,dtype=torch.bool), "amax")
        O(3,2,dtype=torch.bool).index_reduce(1, T([1,0]), Z(3,2,dtype=torch.bool), "amin")
        O(3,2,dtype=torch.complex64).index_reduce(0, T([0,1]), O(2,2,dtype=torch.complex64), "amax")
        O(3,dtype=torch.bool).scatter_reduce(0, T([0,1]), O(2,dtype=torch.bool), "amin")
        T(1+2j).sort()
        T(1+2j).argsort()
        T(1+2j).topk(1)
        T(1+2j).max()
        T(1+2j).min()
        T(1+2j).max(0)
        T(1+2j).aminmax()
        T(1+2j).argmin()
        T(1+2j).argmax()
        T(1+2j).median()
        T(1+2j).nanmedian()
        T(1+2j).softmax(0)
        T(1+2j).log_softmax(0)
        torch.bucketize(T(True), T([True]))
        F.mse_loss(O(2,dtype=torch.complex64), O(2,dtype=torch.complex64))
        F.huber_loss(O(2,dtype=torch.complex64), O(2,dtype=torch.complex64))
        F.smooth_l1_loss(O(2,dtype=torch.complex64), O(2,dtype=torch.complex64))
        F.binary_cross_entropy(O(2,dtype=torch.complex64), O(2,dtype=torch.complex64))
        F.nll_loss(O(1,2,dtype=torch.complex64), T([0]))
        F.nll_loss(O(1,2,1,1,dtype=torch.complex64), T([[[0]]]))
        F.group_norm(O(1,2,dtype=torch.complex64), 1)
        Z(5,0,dtype=torch.int64).softmax(0)
        Z(5,0,dtype=torch.uint8).softmax(1)
        Z(5,0,dtype=torch.complex64).softmax(1)
        Z(5,0,dtype=torch.bool).log_softmax(0)
        Z(5,0).softmax(2)
        Z(5,0,dtype=torch.float16).softmax(0, dtype=torch.float32)
    """,
    "windows of integers": """
        F.avg_pool2d(A(16).view(1,1,4,4), 2)
        F.avg_pool2d(A(16,dtype=torch.int32).view(1,1,4,4), 2)
        F.avg_pool2d(A(16,dtype=torch.uint8).view(1,1,4,4), 2)
        F.avg_pool3d(A(64).view(1,1,4,4,4), 2)
        F.avg_pool3d(A(64,dtype=torch.int16).view(1,1,4,4,4), 2)
        F.adaptive_max_pool3d(A(64,dtype=torch.int16).view(1,1,4,4,4), 2)
    """,
    "norms of nothing": """
        torch.linalg.vector_norm(Z(0), float("inf"))
        torch.linalg.vector_norm(Z(0,3), float("inf"), dim=0)
        torch.linalg.vector_norm(Z(0,3), float("inf"), dim=1)
        torch.linalg.vector_norm(Z(3,0), -1., dim=1, keepdim=True)
        torch.linalg.vector_norm(Z(3,0), -float("inf"), dim=(0,1))
        torch.linalg.vector_norm(Z(3,0), 0.5)
        torch.linalg.norm(Z(0), -0.5)
    """,
    "dimensions of size zero": """
        x=Z(0,3,dtype=torch.complex64);; torch.linalg.svd(x);; y=torch.view_as_real(x.mT);; y.neg()
        torch.linalg.eig(Z(0,0))[1].mH.real.neg()
        Z(0,5).masked_scatter(O(0,5,dtype=torch.bool), O(3))
        F.adaptive_max_pool2d(O(1,0,4,4), 2)
        F.adaptive_max_pool2d(O(0,2,4,4), 2)
        F.adaptive_max_pool2d(O(1,2,0,4), 2)
        F.adaptive_max_pool3d(O(1,2,4,0,4), 2)
        F.adaptive_avg_pool2d(O(1,0,4,4), 2)
        F.adaptive_avg_pool2d(O(1,2,0,4), 2)
        F.adaptive_avg_pool3d(O(1,2,4,0,4), 2)
        F.adaptive_avg_pool1d(O(1,2,0), 2)
        F.multi_margin_loss(Z(0,3), Z(0,dtype=torch.int64), reduction="none")
        F.multilabel_margin_loss(Z(0,3), Z(0,3,dtype=torch.int64), reduction="none")
        Z(0,1,2,0).index_select(0, T([], dtype=torch.int64))
        Z(0,1,2,0).index_select(3, T([], dtype=torch.int64))
        Z(0).index_select(0, T([], dtype=torch.int64))
        torch.combinations(Z(0))
        torch.combinations(Z(0), r=3)
        torch.repeat_interleave(Z(0), T([], dtype=torch.int64))
        F.embedding_bag(T([], dtype=torch.int64), O(4,3), T([0,0]), mode="max")
        w=O(4,3).requires_grad_();; F.embedding_bag(T([], dtype=torch.int64), w, T([0,0]), mode="max").sum().backward();; w.grad
        F.embedding_bag(T([0,1,2,3,0]), A(12.).view(4,3), T([0,2,4]), mode="sum", include_last_offset=True)
        F.embedding_bag(T([0,1,2,3,0]), A(12.).view(4,3), T([0,2,4]), mode="max", include_last_offset=True)
        F.embedding_bag(T([], dtype=torch.int64), A(12.).view(4,3), T([0]), mode="sum", include_last_offset=True)
        y=A(5, dtype=torch.uint8)[:4].view(torch.int16);; y.resize_(1)
        torch.addmm(O(2,2), O(2,2)*float("nan"), O(2,2), alpha=0)
        Z(0,3).argmax(0)
        Z(0).argmax()
        Z(0,3).max(0)
        Z(3,0).masked_select(Z(3,0,dtype=torch.bool))
    """,
    "numbers of a byte": """
        T([1.5,300.,-0.1,1e-9,500.,NAN]).to(torch.float8_e4m3fn).float()
        T([1.5,300.,-0.1,1e-9,1e9,NAN]).to(torch.float8_e5m2).float()
        T([1.5,300.,-0.1,1e-9,1e9]).to(torch.float8_e4m3fnuz).view(torch.uint8)
        T([1.5,300.,-0.1,1e-9,1e9]).to(torch.float8_e5m2fnuz).view(torch.uint8)
        A(256).to(torch.uint8).view(torch.float8_e4m3fn).to(torch.bfloat16)
        A(256).to(torch.uint8).view(torch.float8_e5m2).to(torch.float64)
        x=A(6.).view(2,3).to(torch.float8_e4m3fn);; x.t().float()
        x=A(6.).view(2,3).to(torch.float8_e4m3fn);; x[1:].float()
        torch.isin(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.isin(T([1,2]), O(2,dtype=torch.bool))
        torch.isin(T([1,2]), O(2,dtype=torch.complex64))
        torch.isin(T([1.,2]), T([1,3]), invert=True)
        torch.isin(T([1.,2]), 2)
        torch.isin(2, T([1,3]))
        torch.isin(T([1,2]), True)
        torch.isin(True, T([1,2]))
        torch.isin(T([1.,2]), 1j)
        torch.log1p(T([1.79e308,9e307,1e300,-0.], dtype=torch.float64))
    """,
    "what becomes of nothing": """
        torch.linalg.lstsq(O(1,3,2), O(0,3,2)).solution
        torch.linalg.lstsq(O(1,2,2), O(0,2,1), driver="gelsd").solution
        o=Z(0);; torch._compute_linear_combination(O(3,2,2), O(2,3), out=o);; o
        F.conv2d(O(1,0,4,4), O(2,0,3,3))
        F.conv1d(O(1,0,4), O(2,0,3), padding=1)
        F.conv3d(O(1,0,4,4,4), O(2,0,3,3,3))
        F.conv2d(O(1,3,4,4), O(0,3,3,3))
        F.conv1d(O(1,3,4), O(0,3,3))
        F.conv2d(O(1,3,0,4), O(2,3,3,3), padding=1)
        F.conv2d(O(1,3,4,4), O(2,3,0,3))
        F.conv2d(O(0,3,4,4), O(2,3,3,3))
        F.conv_transpose2d(O(1,0,4,4), O(0,2,3,3))
        F.conv_transpose2d(O(1,3,4,4), O(3,0,3,3))
        F.conv_transpose1d(O(0,3,4), O(3,2,3))
        w=O(2,0,3,3).requires_grad_();; F.conv2d(O(2,0,4,4), w).sum().backward();; w.grad
        x=O(2,0,4,4).requires_grad_();; F.conv2d(x, O(2,0,3,3), O(2)).sum().backward();; x.grad
        torch.native_batch_norm(O(0,3), None, None, None, None, True, 0.1, 1e-5)
        torch.native_batch_norm(O(0,3,2), O(3), O(3), Z(3), O(3), True, 0.1, 1e-5)
        torch.native_batch_norm(O(0,3,2), O(3), O(3), Z(3), O(3), False, 0.1, 1e-5)
        torch.native_batch_norm(O(2,0,2), None, None, None, None, True, 0.1, 1e-5)
        torch.native_batch_norm(O(3), None, None, None, None, True, 0.1, 1e-5)
        torch.segment_reduce(T([]), "sum", lengths=T([], dtype=torch.int64))
        torch.segment_reduce(Z(0,3), "sum", lengths=T([], dtype=torch.int64))
        torch.segment_reduce(O(3), "sum", lengths=T([], dtype=torch.int64))
        torch.segment_reduce(O(3), "sum", offsets=T([], dtype=torch.int64))
        torch.segment_reduce(O(3), "sum", lengths=T(3))
        torch.segment_reduce(T([]), "mean", lengths=T([0,0]))
        F.adaptive_avg_pool1d(Z(0,2,4,dtype=torch.int64), 2)
        F.adaptive_avg_pool2d(Z(0,2,4,4,dtype=torch.int64), 2)
        F.adaptive_avg_pool2d(Z(2,0,4,4,dtype=torch.int64), 2)
        F.adaptive_avg_pool3d(Z(0,2,4,4,4,dtype=torch.int64), 2)
        F.adaptive_max_pool2d(Z(0,2,4,4,dtype=torch.int64), 2)
        F.adaptive_max_pool1d(O(1,2,4), 0)
        F.adaptive_max_pool2d(O(1,2,4,4), (0,2))
        F.adaptive_avg_pool2d(O(1,2,4,4), (0,2))
        torch.native_dropout(Z(0), 0.5, True)
        torch.native_dropout(Z(0,3,dtype=torch.float16), 0.5, True)
        torch.native_dropout(Z(0,dtype=torch.int64), 0.5, False)
        torch.kthvalue(Z(0,3), 1, 0)
        torch.kthvalue(Z(2,0), 1, 1)
        torch.cholesky(Z(0,5))
        torch.cholesky(Z(0))
        torch.lu_unpack(Z(0,3,3), Z(0,3,dtype=torch.int32))
        x=T(1.).requires_grad_();; x.unfold(0,0,1).sum().backward();; x.grad
    """,
    "targets that are added to": """
        o=O(2,2,2);; torch._compute_linear_combination(O(3,2,2), O(2,3), out=o);; o
        o=O(2,2,2);; torch._compute_linear_combination(A(12.).view(3,2,2), A(6.).view(2,3), out=o.mT);; o
    """,
    "operands that are stretched": """
        torch.ops.aten.log_sigmoid_backward(A(12.).view(3,4), A(4.)-2, torch.exp(-(A(4.)-2).abs()))
        torch.ops.aten.log_sigmoid_backward(A(4.), A(12.).view(3,4)-6, torch.exp(-(A(12.).view(3,4)-6).abs()))
        torch.ops.aten.smooth_l1_loss_backward(A(12.).view(3,4), A(4.), A(4.)*.5, 0, 1.)
        torch.ops.aten.mse_loss_backward(A(12.).view(3,4), A(4.), A(4.)*.5, 0)
        torch.ops.aten.huber_loss_backward(A(12.).view(3,4), A(4.), A(4.)*.5, 0, 1.)
        torch.ops.aten.mse_loss_backward(T(3.), A(4.), A(4.)*.5, 1)
    """,
    "lists of another length": """
        F.conv2d(O(1,2,4,4), O(3,2,2,2), stride=[])
        F.conv2d(O(1,2,4,4), O(3,2,2,2), padding=[1,1,1])
        F.conv_transpose2d(O(1,2,4,4), O(2,3,2,2), output_padding=[])
        F.conv_transpose2d(O(1,2,4,4), O(2,3,2,2), output_padding=[1,1,1])
        F.conv_transpose3d(O(1,2,4,4,4), O(2,3,2,2,2), dilation=[1,1])
        F.avg_pool3d(O(1,2,4,4,4), [])
        F.avg_pool2d(O(1,2,4,4), [2,2,2])
        F.avg_pool2d(O(1,2,4,4), 2, [1,1,1])
        F.avg_pool2d(O(1,2,4,4), 2, padding=[])
        F.max_pool2d(O(1,2,4,4), [])
        F.max_pool2d(O(1,2,4,4), 2, padding=[])
        F.max_pool3d(O(1,2,4,4,4), 2, dilation=[])
        torch.ops.aten._adaptive_avg_pool2d(O(4,4), (1,2))
        F.adaptive_max_pool2d(O(1,1,1,4,4), (1,2))
        F.adaptive_avg_pool2d(O(1,2,4,4), (-1,2))
        F.max_unpool2d(O(1,1,1,2,2), A(4).view(1,1,1,2,2), 2, output_size=(4,4))
        F.pad(A(1,13.).view(1,3,4), (-3,1), mode="circular")
        F.pad(A(1,13.).view(1,3,4), (2,-2), mode="circular")
        F.pad(A(1,13.).view(1,3,4), (-1,-2), mode="circular")
        F.pad(A(1,13.).view(1,3,4), (4,4), mode="circular")
        F.pad(A(1,13.).view(1,3,4), (5,-2), mode="circular")
        F.pad(A(1,25.).view(1,2,3,4), (-1,2,2,-1), mode="circular")
        torch.ops.aten.reflection_pad1d(O(3,3,9,9), (2,2))
        torch.ops.aten.reflection_pad1d(O(9), (2,2))
        torch.ops.aten.reflection_pad1d(O(3,9), (2,2,2))
        torch.ops.aten.reflection_pad2d(O(3,3,9,9,9), (2,2,2,2))
        torch.ops.aten.reflection_pad3d(O(3,3,9,9,9,9), (2,2,2,2,2,2))
        torch.ops.aten.replication_pad1d(O(3,3,9,9), (2,2))
        torch.ops.aten.replication_pad2d(O(9,9), (2,2,2,2))
        torch.ops.aten.replication_pad3d(O(3,3,9,9,9,9), (2,2,2,2,2,2))
    """,
    "parameters of layers": """
        F.conv2d(O(1,3,4,4), O(2,3,3,3), O(1))
        F.conv_transpose2d(O(1,3,4,4), O(3,2,3,3), O(1))
        F.linear(O(2,3), O(4,3), O(4,dtype=torch.float64))
        F.linear(O(2,3), O(4,3), O(4,dtype=torch.bool))
        F.linear(O(2,2,3,dtype=torch.bfloat16), O(4,3,dtype=torch.bfloat16), O(4))
        F.linear(O(3,dtype=torch.bfloat16), O(4,3,dtype=torch.bfloat16), O(4))
        F.linear(O(2,3,2,dtype=torch.bfloat16).transpose(1,2), O(4,3,dtype=torch.bfloat16), O(4))
        F.linear(O(2,2,3), O(4,3), O(4,dtype=torch.bfloat16))
        F.linear(O(2,2,3), O(4,3), O(1,4,dtype=torch.float64))
        F.linear(O(2,2,3), O(4,3), O(2,4,dtype=torch.float64))
        F.linear(O(2,2,3), O(4,3), O(1,1,dtype=torch.float64))
        F.linear(O(2,2,3), O(4,3), T(2., dtype=torch.float64))
        F.linear(O(3), O(4,3), T(2., dtype=torch.float64))
        F.linear(O(2,3), O(4,3), T(2., dtype=torch.float64))
        torch.native_layer_norm(O(2,3), (3,), O(1), None, 1e-5)
        torch.native_layer_norm(O(2,3), (3,), O(3), T(1.), 1e-5)
        torch.native_layer_norm(O(2,3), (3,), O(3,dtype=torch.float16), None, 1e-5)
        torch.native_layer_norm(O(2,3,dtype=torch.bfloat16), (3,), O(3), O(3), 1e-5)
        torch.native_group_norm(O(1,6,3), O(1), None, 1, 6, 3, 2, 1e-5)
        torch.native_group_norm(O(1,6,3), O(6), None, 1, 6, 2, 2, 1e-5)
        torch.native_group_norm(O(1,6,3), O(6), None, 1, 6, 3, 4, 1e-5)
        torch.native_group_norm(A(18.), O(6), O(6), 1, 6, 3, 2, 1e-5)
        torch.native_group_norm(A(18.).view(1,1,6,3), O(6), O(6), 1, 6, 3, 2, 1e-5)
        torch.native_batch_norm(O(2,3), O(3), None, O(3), None, True, 0.1, 1e-5)
        torch.native_batch_norm(O(2,3,dtype=torch.int64), None, None, None, None, True, 0.1, 1e-5)
        torch.native_batch_norm(O(2,3,dtype=torch.bool), None, None, Z(3), O(3), False, 0.1, 1e-5)
    """,
    "one type for what is added up": """
        torch.ops.aten._softmax_backward_data(O(2,3), O(2,3,dtype=torch.float16), 1, torch.float32)
        torch.ops.aten._softmax_backward_data(O(2,3,dtype=torch.float16), O(2,3), 1, torch.float32)
        torch.ops.aten._softmax_backward_data(O(2,3,dtype=torch.int64), O(2,3,dtype=torch.int64), 1, torch.int64)
        torch.ops.aten._log_softmax_backward_data(O(2,3), O(2,3,dtype=torch.float16), 1, torch.float32)
        torch.addmm(O(2,2,dtype=torch.float16), O(2,2), O(2,2))
        torch.addmm(O(2,2,dtype=torch.int16), O(2,2), O(2,2), beta=0.)
        torch.addmv(O(2,dtype=torch.bfloat16), O(2,2), O(2), alpha=2.)
        torch.baddbmm(O(1,2,2,dtype=torch.int16), O(1,2,2), O(1,2,2))
        torch.baddbmm(O(1,2,2,dtype=torch.int16), O(1,2,2), O(1,2,2), beta=0.)
        O(2,3,dtype=torch.float16).index_add(0, T([0,1]), O(2,3))
        Z(2,3,dtype=torch.complex64).index_add(0, T([0,1]), torch.full((2,3), complex("inf")+2j, device=D))
        Z(2,3,dtype=torch.complex64).index_add(0, T([0,1]), torch.full((2,3), 1+2j, device=D), alpha=3j)
        O(2,3,dtype=torch.float16).index_reduce(0, T([0,1]), O(2,3), "prod")
        O(2,3,dtype=torch.bfloat16).scatter_add(0, Z(2,3,dtype=torch.int64), O(2,3))
        O(2,3,dtype=torch.float16).scatter_reduce(0, Z(2,3,dtype=torch.int64), O(2,3), "sum")
        O(2,3,dtype=torch.float16).put(T([0,1]), O(2), accumulate=True)
        O(2,3,dtype=torch.float16).index_put((T([0,1]),), O(2,3), accumulate=True)
        torch.linalg.ldl_solve(O(2,2), T([1,2],dtype=torch.int32), O(2,2,dtype=torch.float64))
        torch.where(T([1,0], dtype=torch.int16), O(2), Z(2))
        torch.where(T([1.,0]), O(2), Z(2))
    """,
    "types of losses": """
        F.binary_cross_entropy_with_logits(A(3.,dtype=torch.bfloat16), O(3))
        F.binary_cross_entropy_with_logits(A(3.), O(3,dtype=torch.bfloat16))
        F.binary_cross_entropy_with_logits(A(3.,dtype=torch.float16), O(3), pos_weight=O(3,dtype=torch.float64))
        F.binary_cross_entropy_with_logits(A(3.), O(3,dtype=torch.float64), weight=O(3))
        F.binary_cross_entropy_with_logits(A(3.), T([1,0,1]))
        x=A(3.,dtype=torch.float16).requires_grad_();; F.binary_cross_entropy_with_logits(x, Z(3)).backward();; x.grad
        F.soft_margin_loss(A(3.,dtype=torch.float16), O(3))
        F.soft_margin_loss(A(3.), O(3,dtype=torch.float64))
        x=A(3.,dtype=torch.float16).requires_grad_();; F.soft_margin_loss(x, O(3)).backward();; x.grad
        F.multilabel_margin_loss(T([1.]), T(0))
        F.multilabel_margin_loss(T(1.), T([0]))
        F.huber_loss(O(2), Z(2), delta=float("nan"))
    """,
    "what is no number": """
        torch.addr(O(1,2), T([float("nan")]), O(2), alpha=0.)
        torch.addr(O(1,2), T([float("nan")]), O(2), beta=0., alpha=0.)
        torch.addr(T([[float("nan")]]), O(1), O(1), beta=0., alpha=0.)
        x=A(3.).sub(1).requires_grad_();; F.hardshrink(x, float("nan")).sum().backward();; x.grad
        x=A(3.).sub(1).requires_grad_();; F.hardtanh(x, float("nan"), 0.5).sum().backward();; x.grad
        x=A(3.).sub(1).requires_grad_();; F.hardtanh(x, -0.5, float("nan")).sum().backward();; x.grad
    """,
    "limits of truth values": """
        torch.clamp(O(2,dtype=torch.bool), max=Z(2,dtype=torch.bool))
        torch.clamp(O(2,dtype=torch.bool), min=O(2,dtype=torch.bool))
        torch.clamp(O(2,dtype=torch.bool), O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        x=O(2,dtype=torch.bool);; x.clamp_(max=Z(2,dtype=torch.bool))
        torch.clamp(A(4), min=T([1,1,3,3]))
        torch.clamp_min(O(2,dtype=torch.bool), True)
        torch.clamp_max(O(2,dtype=torch.bool), True)
        torch.clamp_max(O(2,dtype=torch.bool), 2)
        torch.clamp_max(O(2,dtype=torch.complex64), 1)
        torch.clamp_min(O(2,dtype=torch.complex64), O(2))
    """,
    "types of indices": """
        Z(3)[T([0.])]
        Z(3).index_select(0, T([0.]))
        Z(3).gather(0, T([0.]))
        Z(3).take(T([0.]))
        Z(3).index_add(0, T([0.]), O(1))
        Z(3).index_copy(0, T([0.]), O(1))
        Z(3).index_fill(0, T([0.]), 1)
        Z(3).scatter(0, T([0.]), 1)
        Z(3).scatter(0, T([0.]), O(1))
        Z(3).scatter_add(0, T([0.]), O(1))
        Z(3).scatter_reduce(0, T([0.]), O(1), "sum")
        Z(3).index_reduce(0, T([0.]), O(1), "amax")
        Z(3).put(T([0.]), O(1))
        Z(3).index_put((T([0.]),), O(1))
        x=Z(3);; x.__setitem__(T([0.]), 1);; x
        F.embedding(T([0.]), O(3,3))
        Z(3)[T([0], dtype=torch.int16)]
        Z(3)[T([0], dtype=torch.complex64)]
        Z(3).index_select(0, T([0], dtype=torch.int16))
        Z(3).gather(0, T([0], dtype=torch.int16))
        Z(3).take(T([0], dtype=torch.int32))
        Z(3).index_add(0, T([0], dtype=torch.int16), O(1))
        Z(3).index_copy(0, T([0], dtype=torch.int32), O(1))
        Z(3).index_fill(0, T([0], dtype=torch.int32), 1)
        Z(3).put(T([0], dtype=torch.int32), O(1))
        F.embedding(T([0], dtype=torch.int16), O(3,3))
        F.nll_loss(O(2,3), T([0,1], dtype=torch.int32))
    """,
    "vectors for matrices": """
        torch.linalg.solve_triangular(O(2), O(2,3), upper=True)
        torch.linalg.solve_triangular(O(2,2), O(2), upper=True)
        torch.triangular_solve(O(2), O(2,2))
        torch.triangular_solve(O(2,2), O(2))
        torch.cholesky_solve(O(2), O(2,2))
        torch.linalg.lu_solve(O(2), O(2,dtype=torch.int32), O(2,2))
        torch.linalg.ldl_solve(O(2), O(2,dtype=torch.int32), O(2,2))
    """,
    "wrong lengths": """
        F.cross_entropy(O(2,3), T([0,1]), weight=O(2))
        F.cross_entropy(O(2,3), T([0,1]), weight=O(4))
        F.cross_entropy(O(2,3), T([0,1]), weight=O(1,3))
        F.cross_entropy(O(2,3), T([0,1]), weight=O(3,1))
        F.nll_loss(O(2,3), T([0,1]), weight=O(2))
        F.nll_loss(O(2,3), T([0,1]), weight=O(1,3))
        F.nll_loss(O(2,3,4,4), Z(2,4,4,dtype=torch.int64), weight=O(2))
        F.nll_loss(O(2,3,4,4), Z(2,4,5,dtype=torch.int64))
        F.nll_loss(O(3), T([0]))
        F.cross_entropy(O(2,3), O(2,4))
        F.binary_cross_entropy_with_logits(O(2,3), O(2,3), pos_weight=O(2))
        F.multilabel_margin_loss(O(2,3), T([[0,1]]))
        F.layer_norm(O(2,3), (3,), weight=O(2))
        F.layer_norm(O(2,3), (3,), bias=O(2))
        F.linear(O(2,3), O(4,3), O(3))
        F.linear(O(2,3), O(4,3), O(2,2))
        F.conv2d(O(1,3,4,4), O(2,3,3,3), bias=O(3))
        F.conv2d(O(1,3,4,4), O(2,3,5,5))
        F.conv1d(O(1,3,4), O(2,3,3), stride=0)
        F.conv_transpose2d(O(1,3,4,4), O(2,4,3,3))
        torch.addmm(O(3,3), O(2,3), O(3,2))
        torch.addmv(O(3), O(2,3), O(3))
        torch.addmv(O(2), O(2,3), O(2))
        torch.addbmm(O(2,2), O(2,2,3), O(3,3,2))
        torch.mm(O(2,3,2), O(2,3))
        torch.mv(O(2,3), O(2))
        torch.dot(O(2), O(3))
        torch.dot(O(2), O(2,dtype=torch.float64))
        torch.mm(O(2,3), O(3,2,dtype=torch.float64))
        torch.cat([O(2,3), O(3,2)])
        torch.stack([O(2), O(3)])
        torch.cat([O(2,3), O(2,3,1)])
        O(3).masked_fill(T([True,False]), 0)
        O(3).masked_fill(T([1,0,1]), 0)
        O(3).masked_scatter(T([1,0,1]), O(3))
        O(2,3,4).trace()
        O(2,3).topk(5)
        O(2,3).gather(0, O(3,3,3,dtype=torch.int64))
        O(2,3).scatter(0, Z(2,4,dtype=torch.int64), O(2,4))
        O(2,3).scatter(0, Z(2,3,dtype=torch.int64), O(1,3))
        O(2,3).scatter(0, Z(2,3,dtype=torch.int64), O(2,3,dtype=torch.float64))
        O(2,3).scatter(0, Z(2,3,1,dtype=torch.int64), O(2,3,1))
        O(2,3).index_add(0, Z(2,dtype=torch.int64), O(3,3))
        O(2,3).index_add(0, Z(2,dtype=torch.int64), O(2,4))
        O(2,3).index_add(0, Z(2,dtype=torch.int64), O(2,3,dtype=torch.float64))
        O(2,3).index_copy(0, Z(2,dtype=torch.int64), O(3,3))
        O(2,3).index_copy(0, Z(2,dtype=torch.int64), O(2,4))
        O(2,3).index_copy(0, Z(2,dtype=torch.int64), O(2,3,dtype=torch.float64))
        O(2,3).index_fill(0, Z(2,2,dtype=torch.int64), 1)
        O(2,3).put(Z(2,dtype=torch.int64), O(3))
        O(2,3).put(Z(2,dtype=torch.int64), O(2,dtype=torch.float64))
        O(2,3).index_put((Z(2,dtype=torch.int64),), O(3,3,3))
        O(2,3).index_put((Z(2,dtype=torch.int64),), O(2,3,dtype=torch.float64))
        F.pad(O(2,3), (5,5), mode="reflect")
        F.pad(O(2,3), (-5,1))
        F.pad(O(1,2,3), (-5,1), mode="replicate")
        F.avg_pool2d(O(1,2,3,3), 5)
        F.max_pool2d(O(1,2,3,3), 5)
        F.max_pool2d(O(1,0,3,3), 2)
        F.grid_sample(O(1,2,3,3), O(1,2,2,3))
        F.grid_sample(O(1,2,3,3), O(2,2,2,2))
    """,
    "empty indices that scatter": """
        Z(3,2).scatter(0, T([], dtype=torch.int64), O(3,2))
        Z(3,2).scatter_add(0, T([], dtype=torch.int64), O(3,2))
        Z(3,2).scatter_reduce(0, T([], dtype=torch.int64), O(3,2), "sum")
        Z(3,2).scatter_reduce(0, T([], dtype=torch.int64), O(3,2), "sum", include_self=False)
        Z(3,2).scatter(0, T([], dtype=torch.int64), O(3,2), reduce="add")
        x=Z(3,2);; x.scatter_(0, T([], dtype=torch.int64), O(3,2))
        x=Z(3,2);; x.scatter_add_(0, T([], dtype=torch.int64), O(3,2))
        x=Z(3,2);; x.scatter_reduce_(0, T([], dtype=torch.int64), O(3,2), "amax")
        Z(3,2).scatter(0, Z(0,5,dtype=torch.int64), O(3,2))
        Z(3,2).scatter(0, Z(0,2,1,dtype=torch.int64), O(3,2))
        w=O(3,2).requires_grad_();; w.scatter(0, T([], dtype=torch.int64), O(3,2)).sum().backward();; w.grad
        w=O(3,2).requires_grad_();; Z(3,2).scatter_add(0, T([], dtype=torch.int64), w).sum().backward();; w.grad
        w=O(3,2).requires_grad_();; Z(3,2).scatter_reduce(0, T([], dtype=torch.int64), w, "prod").sum().backward();; w.grad
    """,
    "random numbers of other types": """
        Z(3,dtype=torch.int64).normal_().shape
        Z(3,dtype=torch.int64).exponential_().shape
        Z(3,dtype=torch.int64).log_normal_().shape
        Z(3,dtype=torch.bool).geometric_(0.5).shape
        Z(3,dtype=torch.complex64).geometric_(0.5).shape
        Z(3,dtype=torch.int64).bernoulli()
        O(3,dtype=torch.bool).bernoulli()
        torch.bernoulli(T([0,1,1]))
        Z(3,dtype=torch.complex64).bernoulli_().shape
        torch.randperm(3,dtype=torch.bool,device=D).shape
        torch.randperm(-3,device=D).shape
        torch.normal(T([1,2]), 1.0).shape
        torch.normal(1.0, T([1,2])).shape
        torch.normal(T([1,2]), T([1,2])).shape
        torch.normal(0, 1, (3,), dtype=torch.int64, device=D).shape
        F.rrelu(T([1,2]), training=True).shape
        F.gumbel_softmax(T([1,2])).shape
    """,
    "shapes of indices": """
        x=Z(3,3);; x[[0,1],[0,1,2]]
        x=Z(3,3);; x[False,[0,1],...]
        x=Z(3,3);; x[T([0,1]),T([0,1,2])]
        x=Z(2,3,4);; x[False,[0,1],[0,1]]
        x=Z(3);; x.__setitem__(T([True,False,True]), T([1.,2.,3.]));; x
        x=Z(3,3);; x.__setitem__(T([True,False,True]), O(2));; x
        x=Z(3,3);; x.__setitem__(T([0,1]), O(2));; x
        x=Z(3,3);; x.__setitem__(([0,1],[0,1,2]), 1.);; x
        x=Z(3,3);; x.__setitem__((T([0,1]),T([0,1,2])), 1.);; x
        x=Z(3,3);; x.index_put_((T([True,False,True]),), O(3,3));; x
        x=Z(3,3);; x.index_put_((T([0,1]),), O(2,3,dtype=torch.float64));; x
    """,
    "targets of another shape": """
        o=Z(2,2);; torch.arange(4, out=o);; o
        o=Z(2,2);; torch.linspace(0,1,4, out=o);; o
        o=Z(2,2);; torch.logspace(0,1,4, out=o);; o
        b=Z(4,2);; torch.arange(8, out=b.t());; b
        b=Z(4,2);; torch.linspace(0,7,8, out=b.t());; b
        b=Z(4,2);; torch.logspace(0,1,8, out=b.t());; b
        o=Z(10);; torch.fft.fftfreq(10, 0.5, out=o);; o
        o=Z(0);; torch.fft.fftfreq(11, 0.5, out=o);; o
        o=Z(0);; torch.fft.rfftfreq(11, 0.5, out=o);; o
    """,
    "complex sequences": """
        torch.linspace(0, 1+2j, 5, device=D)
        torch.linspace(1j, 1, 5, dtype=torch.complex128, device=D)
        torch.logspace(0, 1+2j, 5, device=D)
        torch.linspace(0, 1+2j, 5, dtype=torch.float32, device=D)
        torch.linspace(0, 1+2j, 1, device=D)
        torch.linspace(0, 1+2j, 0, device=D)
        torch.arange(0, 3, dtype=torch.complex64, device=D)
        torch.arange(0, 2, dtype=torch.bool, device=D)
        torch.linspace(0, 1, 3, dtype=torch.bool, device=D)
        torch.zeros(-1, device=D)
        torch.tril_indices(-1, 2, device=D)
    """,
    "limits and slopes": """
        O(3).clamp()
        O(3).clamp_()
        torch.clamp(O(3))
        torch.clip(O(3))
        torch.clamp(O(3), min=None, max=None)
        o=Z(3);; torch.clamp(O(3), out=o)
        x=O(3).requires_grad_();; y=x*1;; F.leaky_relu(y,-2.,inplace=True).sum().backward();; x.grad
        x=O(3).requires_grad_();; y=x*1;; F.elu(y,-2.,inplace=True).sum().backward();; x.grad
        x=O(3).requires_grad_();; y=x*1;; F.celu(y,-2.,inplace=True).sum().backward();; x.grad
        x=O(3).requires_grad_();; y=x*1;; F.rrelu(y,-2.,-1.,inplace=True).sum().backward();; x.grad
        F.softshrink(O(3), -1.)
        F.logsigmoid(T([1,2]))
        O(3,dtype=torch.complex64).clamp(0,1)
    """,
    "segments": """
        torch.segment_reduce(T([1.,2,3,4]), "amax", lengths=T([2,2]))
        torch.segment_reduce(T([1.,2,3,4]), "amin", lengths=T([2,2]))
        torch.segment_reduce(T([1.,2,3,4]), "foo", lengths=T([2,2]))
        x=T([1.,float('nan'),3,4,5,5]).requires_grad_();; torch.segment_reduce(x, "amin", lengths=T([1,2,3,0])).sum().backward();; x.grad
        x=T([1.,float('nan'),3,4,5,5]).requires_grad_();; torch.segment_reduce(x, "prod", lengths=T([1,2,3,0]), initial=2.).sum().backward();; x.grad
        x=T([1.,float('nan'),3,4,5,5]).requires_grad_();; torch.segment_reduce(x, "prod", lengths=T([1,2,3,0])).sum().backward();; x.grad
        x=T([1.,float('nan'),3,0,5,5]).requires_grad_();; torch.segment_reduce(x, "prod", lengths=T([1,2,3,0])).sum().backward();; x.grad
        x=T([0.,0,3,0,5,5]).requires_grad_();; torch.segment_reduce(x, "prod", lengths=T([1,2,3,0])).sum().backward();; x.grad
        x=T([1.,float('nan'),0,4,5,5]).requires_grad_();; Z(3).scatter_reduce(0, T([0,0,1,1,1,2]), x, "prod").sum().backward();; x.grad
        x=T([1.,float('nan'),0,4,5,5]).requires_grad_();; O(3).scatter_reduce(0, T([0,0,1,1,1,2]), x, "prod").sum().backward();; x.grad
    """,
    "functional transforms": """
        f=lambda x: [y:=x.clone(), z:=y.view(4), w:=z[1:3], w.mul_(5), y][-1];; torch.func.vmap(torch.func.functionalize(f))(O(3,2,2))
        f=lambda x: [y:=x.clone(), z:=y.diagonal(), z.fill_(3), y][-1];; torch.func.vmap(torch.func.functionalize(f))(O(3,2,2))
        f=lambda x: [y:=x.clone(), a:=y.unbind(), a[0].add_(1), y][-1];; torch.func.vmap(torch.func.functionalize(f))(O(3,2,2))
    """,
    "shared memory": """
        A(9.)[1:].view(torch.float64)
        A(8.).view(2,4)[:, 1:3].view(torch.float64)
        A(9.)[1:].view(torch.complex64)
        torch.view_as_complex(A(9.)[1:].view(4,2))
        torch.view_as_complex(A(8.).view(2,4).t())
        torch.view_copy(A(6.).view(2,3).t(), (6,))
        x=Z(1).expand(3,3);; x.normal_().shape
        x=Z(1).expand(3,3);; x.bernoulli_(O(3,3)).shape
        x=Z(1).expand(3,3);; F.threshold_(x, 0.5, 2.)
        x=Z(1).expand(3,3);; F.rrelu_(x)
        x=Z(1).expand(3,3);; x.masked_fill_(Z(3,3,dtype=torch.bool), 1)
        x=Z(1).expand(3,3);; x.index_fill_(0, T([0]), 1)
        x=Z(1).expand(3,3);; x.tril_()
        x=Z(1).expand(3,3);; x.triu_()
        x=Z(1).expand(3,3);; x.index_fill_(0, T([], dtype=torch.int64), 1)
        x=Z(1).expand(3,3);; torch.arange(9, out=x)
        x=Z(6);; torch.add(x[:-1], 1, out=x[1:])
        x=Z(6);; x.index_put_((T([0]),), x[:1])
        x=Z(6);; torch.cumsum(x[:-1], 0, out=x[1:])
        x=Z(6);; torch.sort(x[:-1], out=(x[1:], Z(5,dtype=torch.int64)))
    """,
    "arguments that are refused": """
        torch.bucketize(O(2), T(1.))
        torch.bucketize(1., T(1.))
        torch.searchsorted(T(1.), O(2))
        torch.searchsorted(O(2,3), O(2))
        torch.searchsorted(O(3,3), O(2,2))
        torch.addr(Z(3,3), T(1.), O(3))
        torch.addr(Z(3,3), O(3), T(1.))
        torch.softmax(T(1.), 2)
        torch.log_softmax(T(1.), 1)
        torch.nn.functional.softmin(T(1.), 1)
        torch.ops.aten._safe_softmax(T(1.), 1)
        torch.index_select(T(1.), 0, Z(0,dtype=torch.int64))
        torch.index_select(T(1.), 0, Z(2,dtype=torch.int64))
        torch.hash_tensor(Z(0,3))
        torch.hash_tensor(Z(0,3), dim=0)
        torch.kthvalue(Z(0,3), 1, 0)
        Z(3).masked_fill(T([1,0,1],dtype=torch.uint8), 1)
        Z(3).masked_scatter(T([1,0,1],dtype=torch.uint8), O(3))
        torch.addr(Z(2,3,dtype=torch.bool), O(2,dtype=torch.bool), O(3,dtype=torch.bool), beta=1.5)
        torch.addr(Z(2,3), O(2), O(3), beta=True)
        torch.addr(Z(2,3,dtype=torch.int64), O(2,dtype=torch.int64), O(3,dtype=torch.int64), alpha=True)
        torch.addr(Z(2,3,dtype=torch.bool), O(2,dtype=torch.bool), O(3,dtype=torch.bool), alpha=True)
        torch.addr(Z(2,3,dtype=torch.int64), O(2,dtype=torch.int64), O(3,dtype=torch.int64), beta=1.5)
        torch.add(O(2,dtype=torch.bool), O(2,dtype=torch.bool), alpha=1.5)
        torch.add(O(2,dtype=torch.int64), O(2,dtype=torch.int64), alpha=1.5)
        torch.sub(O(2,dtype=torch.bool), O(2))
        1 - O(2,dtype=torch.bool)
        O(2) & O(2)
        O(2) << 1
        O(2,dtype=torch.complex64) > 1
        O(2,dtype=torch.complex64).sort()
        O(2,dtype=torch.complex64).max()
        O(2,dtype=torch.complex64).floor()
        O(2,dtype=torch.complex64) % 2
        O(2,dtype=torch.complex64) // 2
        torch.nn.ReflectionPad2d(1)(Z(1,0,10,10))
        torch.nn.ReflectionPad2d(1)(Z(1,1,0,10))
        torch.nn.ReflectionPad2d(1)(Z(0,10,10))
        torch.nn.ReflectionPad1d(1)(Z(1,0,10))
        torch.nn.ReplicationPad2d(1)(Z(1,0,10,10))
        torch.nn.ReflectionPad2d(3)(Z(1,1,3,3))
        torch.maximum(O(2,dtype=torch.complex64), O(2))
        torch.minimum(O(2,dtype=torch.complex64), O(2))
        torch.fmax(O(2,dtype=torch.complex64), O(2))
        torch.fmin(O(2,dtype=torch.complex64), O(2))
        torch.heaviside(O(2), O(2,dtype=torch.float64))
        torch.heaviside(O(2), T(1))
        torch.heaviside(O(2,dtype=torch.complex64), O(2,dtype=torch.complex64))
        O(2).new_empty_strided((2,),())
        torch.empty_strided((2,),(),device=D)
        torch.empty_strided((2,),(-1,),device=D)
        F.grid_sample(O(1,2,3,3), O(1,2,2,2,3))
        F.grid_sample(O(1,2,3,3), O(1,2,2,2,dtype=torch.float64))
        F.grid_sample(O(2,3,3), O(1,2,2,2))
        F.grid_sample(O(1,2,0,3), O(1,2,2,2))
        F.grid_sample(O(1,2,3,3,3), O(1,2,2,2,2))
        F.grid_sample(T([[[[1]]]]), O(1,2,2,2))
        torch.complex(O(2), O(2,dtype=torch.float64))
        torch.complex(T([1]), T([1]))
        torch.polar(O(2), O(2,dtype=torch.float64))
        torch.polar(T([1]), T([1]))
        torch.linalg.solve_triangular(O(2,2), O(3,2), upper=True)
        torch.linalg.norm(O(2,2,dtype=torch.int64))
        torch.linalg.vector_norm(O(2,2,dtype=torch.int64))
        torch.stft(O(2), 4, return_complex=True)
        torch.searchsorted(T([[1.,2]]), T([1.]))
        torch.logcumsumexp(T([1,2]), 0)
        torch.mean(T([1,2]))
        torch.amax(Z(0))
        torch.amax(Z(0,2), 0)
        torch.aminmax(Z(0))
        torch.min(Z(0,2), 0)
        torch.softmax(T([1,2]), 0)
        torch.gcd(O(2), O(2))
        torch.lcm(O(2), O(2))
        torch.pow(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.bitwise_and(O(2), 1)
        torch.div(O(2), O(2), rounding_mode="foo")
    """,
    "types without a kernel": """
        torch.mm(O(2,2,dtype=torch.bool), O(2,2,dtype=torch.bool))
        torch.bmm(O(2,2,2,dtype=torch.bool), O(2,2,2,dtype=torch.bool))
        torch.mv(O(2,2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.dot(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.addmm(O(2,2,dtype=torch.bool), O(2,2,dtype=torch.bool), O(2,2,dtype=torch.bool))
        torch.matmul(O(2,2,dtype=torch.bool), O(2,2,dtype=torch.bool))
        torch.einsum("ij,jk", O(2,2,dtype=torch.bool), O(2,2,dtype=torch.bool))
        F.linear(O(2,2,dtype=torch.bool), O(2,2,dtype=torch.bool))
        torch.abs(O(2,dtype=torch.bool))
        F.gelu(T([1,2]))
        torch.igamma(T([1,2]), T([1,2]))
        torch.igammac(T([1,2]), T([1,2]))
        torch.logaddexp(T([1,2]), T([1,2]))
        torch.logaddexp2(T([1,2]), T([1,2]))
        torch.argmax(O(2,dtype=torch.bool))
        torch.argmin(O(2,dtype=torch.bool))
        torch.argmax(O(2,dtype=torch.complex64))
        F.silu(T([1,2]))
        F.mish(T([1,2]))
        F.elu(T([1,2]))
        F.celu(T([1,2]))
        F.selu(T([1,2]))
        F.leaky_relu(T([1,2]))
        F.softplus(T([1,2]))
        F.hardswish(T([1,2]))
        F.hardsigmoid(T([1,2]))
        F.relu(O(2,dtype=torch.bool))
        F.relu(O(2,dtype=torch.complex64))
        F.prelu(T([1,2]), T([1]))
        F.glu(T([1,2]))
        F.softshrink(T([1,2]))
        F.hardshrink(T([1,2]))
        F.threshold(O(2,dtype=torch.bool), 1, 0)
        F.log_softmax(T([1,2]), 0)
        F.layer_norm(T([1,2]), (2,))
        F.group_norm(T([[1,2]]), 1)
        F.adaptive_avg_pool1d(T([[[1,2,3]]]), 2)
        F.adaptive_avg_pool2d(T([[[[1,2,3]]]]), 1)
        F.adaptive_max_pool2d(T([[[[1,2,3]]]]), 1)
        F.pad(O(1,1,3,dtype=torch.bool), (1,1), mode="reflect")
        F.mse_loss(T([1,2]), T([1,2]))
        F.l1_loss(T([1,2]), T([1,2]))
        F.smooth_l1_loss(T([1,2]), T([1,2]))
        F.huber_loss(T([1,2]), T([1,2]))
        F.binary_cross_entropy(T([1,1]), T([1,1]))
        F.binary_cross_entropy_with_logits(T([1,1]), T([1,1]))
        F.nll_loss(T([[1,1]]), T([1]))
        F.cross_entropy(T([[1,1]]), T([1]))
        F.soft_margin_loss(T([1,1]), T([1,1]))
        torch.cdist(T([[1,1]]), T([[1,1]]))
        torch.lerp(T([1,1]), T([1,1]), 0.5)
        torch.lerp(O(2,dtype=torch.bool), O(2,dtype=torch.bool), 0.5)
        torch.addcdiv(T([1,1]), T([1,1]), T([1,1]))
        torch.hypot(T([1,1]), T([1,1]))
        torch.fmod(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.remainder(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.floor_divide(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.div(O(2,dtype=torch.bool), O(2,dtype=torch.bool), rounding_mode="floor")
        torch.gcd(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.bitwise_left_shift(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.floor(O(2,dtype=torch.bool))
        torch.ceil(O(2,dtype=torch.bool))
        torch.round(O(2,dtype=torch.bool))
        torch.trunc(O(2,dtype=torch.bool))
        torch.frac(T([1,1]))
        torch.round(T([1,1]), decimals=2)
        torch.sign(O(2,dtype=torch.complex64))
        torch.signbit(O(2,dtype=torch.complex64))
        torch.isposinf(O(2,dtype=torch.complex64))
        torch.cummax(O(2,dtype=torch.complex64), 0)
        torch.logcumsumexp(O(2,dtype=torch.bool), 0)
        torch.median(O(2,dtype=torch.bool))
        torch.median(O(2,dtype=torch.complex64))
        torch.searchsorted(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.nanmedian(O(2,dtype=torch.bool))
        torch.amax(O(2,dtype=torch.complex64))
        torch.aminmax(O(2,dtype=torch.complex64))
        torch.linalg.norm(T([1,1]))
        torch.dist(T([1,1]), T([1,1]))
        torch.renorm(T([[1,1]]), 2, 0, 1)
        torch.erfinv(O(2,dtype=torch.complex64))
        torch.lgamma(O(2,dtype=torch.complex64))
        torch.mean(O(2,dtype=torch.bool))
        torch.baddbmm(O(2,2,2,dtype=torch.bool), O(2,2,2,dtype=torch.bool), O(2,2,2,dtype=torch.bool))
        torch.addmv(O(2,dtype=torch.bool), O(2,2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.vdot(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        torch.inner(O(2,dtype=torch.bool), O(2,dtype=torch.bool))
        F.grid_sample(T([[[[1]]]]), T([[[[1,1]]]]))
        F.interpolate(T([[[1,1]]]), size=4, mode="linear")
        F.interpolate(O(1,1,2,dtype=torch.bool), size=4)
        F.scaled_dot_product_attention(T([[[1]]]), T([[[1]]]), T([[[1]]]))
        torch.linalg.solve_triangular(O(2,2,dtype=torch.int64), O(2,2,dtype=torch.int64), upper=True)
        torch.triangular_solve(O(2,2,dtype=torch.int64), O(2,2,dtype=torch.int64))
        torch.topk(O(2,dtype=torch.complex64), 1)
        torch.kthvalue(O(2,dtype=torch.complex64), 1)
        torch.linalg.cross(O(2,3,dtype=torch.bool), O(2,3,dtype=torch.bool))
        torch.igamma(O(2,dtype=torch.complex64), O(2,dtype=torch.complex64))
        torch.amax(T(1j))
        F.gelu(O(2,dtype=torch.complex64))
        F.hardswish(O(2,dtype=torch.complex64))
        F.hardsigmoid(O(2,dtype=torch.complex64))
        F.hardtanh(O(2,dtype=torch.complex64))
        F.hardtanh(O(2,dtype=torch.bool))
        F.glu(O(2,dtype=torch.complex64))
        torch.logit(O(2,dtype=torch.complex64))
        F.avg_pool2d(O(1,2,4,4,dtype=torch.complex64), 2)
        F.max_pool2d(O(1,2,4,4,dtype=torch.bool), 2)
        F.max_pool3d(O(1,2,4,4,4,dtype=torch.complex64), 2)
        F.adaptive_avg_pool2d(O(1,2,4,4,dtype=torch.complex64), 2)
        F.interpolate(O(1,2,4,dtype=torch.complex64), size=2)
        F.interpolate(O(1,2,4,dtype=torch.complex64), size=2, mode="linear")
        F.multi_margin_loss(T([[1,2]]), T([0]))
        F.multilabel_margin_loss(T([[1,2]]), T([[0,1]]))
        torch.cholesky(O(2,2,dtype=torch.int64))
        torch.cholesky(torch.eye(2,device=D), out=Z(2,2,dtype=torch.int64))
        torch.linalg.cholesky(torch.eye(2,device=D), out=Z(2,2,dtype=torch.int64))
        torch.linalg.cholesky(torch.eye(2,device=D), out=Z(2,2,dtype=torch.float64))
        torch.cholesky_inverse(O(2,2,dtype=torch.int64))
        torch.cholesky_inverse(torch.eye(2,device=D), out=Z(2,2,dtype=torch.int64))
        torch.cholesky_solve(O(2,1), torch.eye(2,device=D), out=Z(2,1,dtype=torch.int64))
    """,
    "bytes as another type": """
        T([True,False]).view(torch.uint8)
        T([True,False]).view(torch.int8)
        T([True,False]).view(torch.int16)
        T([0,1,1,0], dtype=torch.uint8).view(torch.bool)
        T([0,256,1,257], dtype=torch.int16).view(torch.bool)
        T(True).view(torch.uint8)
        T([1+2j,3-4j]).view(torch.float64)
        T([1+2j,3-4j]).view(torch.int16)
        T([1+2j,3-4j]).view(torch.uint8)
        T([1+2j,3-4j]).view(torch.complex128)
        T([1+2j,3-4j], dtype=torch.complex128).view(torch.complex64)
        T(1+2j).view(torch.int64)
        T([[1+2j],[3-4j]]).view(torch.int32)
        A(8, dtype=torch.int64).view(torch.complex64)
        A(8, dtype=torch.int32).view(torch.complex64)
        A(16, dtype=torch.float16).view(torch.complex64)
        Z(0, dtype=torch.complex64).view(torch.float64)
        x=T([True,False]);; x.untyped_storage().tolist()
        x=T([1+2j,3-4j]);; x.untyped_storage().tolist()
        x=T([1+2j,3-4j]);; x.view(torch.int32)[1:3]=0;; x
        x=A(4.);; x.view(torch.complex64).mul_(2j);; x
        x=T([True,False]);; x.view(torch.uint8).fill_(1);; x
        x=T([0,5,6], dtype=torch.uint8);; x.view(torch.bool)[0]=True;; x
        x=T([0,5,6], dtype=torch.uint8);; x.view(torch.bool)[1]=False;; x
        x=T([0,5,6,7], dtype=torch.uint8);; x.view(torch.bool)[2:].fill_(False);; x.view(torch.int16)
    """,
    "classes in bytes": """
        F.nll_loss(A(6.).view(2,3), T([0,2], dtype=torch.uint8))
        F.nll_loss(A(6.).view(2,3), T([0,2], dtype=torch.uint8), weight=A(3.))
        F.nll_loss(A(6.).view(2,3), T([0,2], dtype=torch.uint8), ignore_index=2)
        F.nll_loss(A(314.).view(2,157), T([0,156], dtype=torch.uint8))
        w=A(6.).view(2,3).requires_grad_();; F.nll_loss(w, T([0,2], dtype=torch.uint8)).backward();; w.grad
    """,
    "types that do not promote": """
        torch.lerp(O(2), O(2,dtype=torch.float64), 0.5)
        torch.lerp(O(2), O(2,dtype=torch.float64), O(2))
        torch.lerp(O(2,dtype=torch.float16), O(2,dtype=torch.bfloat16), 0.5)
        torch.lerp(O(2,dtype=torch.float64), O(2,dtype=torch.float64), 0.5)
        torch.lerp(O(2,dtype=torch.float16), O(2,dtype=torch.float16), 0.5)
        x=O(2);; x.lerp_(O(2,dtype=torch.float64), 0.5)
    """,
    "complex numbers that scatter": """
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,0,2]), T([1+1j,2,3j]), "sum", include_self=False)
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,0,2]), T([1+1j,2,3j]), "mean", include_self=False)
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,0,2]), T([1+1j,2,3j]), "mean")
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,0,2]), T([1+1j,2,3j]), "prod", include_self=False)
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,0,2]), T([1+1j,2,3j]), "prod")
    """,
    "types of matrices": """
        torch.linalg.eig(O(2,2,dtype=torch.int64))
        torch.linalg.eig(O(2,2,dtype=torch.bfloat16))
        torch.linalg.eigvals(O(2,2,dtype=torch.int64))
        torch.linalg.eigh(O(2,2,dtype=torch.int64))
        torch.linalg.eigh(O(2,2,dtype=torch.float16))
        torch.linalg.eigvalsh(O(2,2,dtype=torch.int64))
        torch.linalg.lu_factor(O(2,2,dtype=torch.int64))
        torch.linalg.lu(O(2,2,dtype=torch.float16))
        torch.linalg.inv(O(2,2,dtype=torch.int64))
        torch.linalg.solve(O(2,2,dtype=torch.float16), O(2,2,dtype=torch.float16))
        torch.linalg.svd(O(2,2,dtype=torch.int64))
        torch.linalg.qr(O(2,2,dtype=torch.int64))
        torch.linalg.cholesky(O(2,2,dtype=torch.int64))
        torch.geqrf(O(2,2,dtype=torch.int64))
        torch.ormqr(O(2,2,dtype=torch.float16), O(2,dtype=torch.float16), O(2,2,dtype=torch.float16))
        torch.linalg.householder_product(O(2,2,dtype=torch.int64), O(2,dtype=torch.int64))
    """,
    "products times nothing": """
        torch.addr(T([[NAN]]), T([0.]), T([0.]), beta=0., alpha=0.)
        torch.addr(T([[0.]]), T([NAN]), T([1.]), beta=0., alpha=0.)
        torch.addr(T([[0.]]), T([NAN]), T([1.]), beta=1., alpha=0.)
        torch.addmm(T([[NAN]]), T([[2.]]), T([[1.]]), beta=0., alpha=0.)
        torch.addmm(T([[1.]]), T([[NAN]]), T([[1.]]), beta=1., alpha=0.)
        torch.addmv(T([1.]), T([[NAN]]), T([1.]), beta=1., alpha=0.)
        torch.addmv(T([NAN]), T([[1.]]), T([1.]), beta=0., alpha=0.)
        torch.baddbmm(O(1,8,8), Z(1,8,8)+NAN, O(1,8,8), beta=1., alpha=0.)
        torch.addbmm(T([[1.]]), T([[[NAN]]]), T([[[1.]]]), beta=1., alpha=0.)
        torch.addcmul(T([1.]), T([NAN]), T([1.]), value=0.)
        torch.addcdiv(T([1.]), T([NAN]), T([1.]), value=0.)
        torch.add(T([1.]), T([NAN]), alpha=0.)
        torch.sub(T([1.]), T([NAN]), alpha=0.)
        torch.lerp(T([1.]), T([NAN]), 0.)
        torch.lerp(T([1.]), T([NAN]), T([0.]))
    """,
    "infinite parameters of draws": """
        Z(3).normal_(float("inf"), 1.)
        Z(3).cauchy_(float("inf"), 1.)
        Z(3).cauchy_(-float("inf"), 1.)
        Z(3).cauchy_(float("nan"), 1.)
        Z(3, dtype=torch.float16).cauchy_(float("inf"), 1.)
        Z(3).log_normal_(float("inf"), 1.)
        Z(3).log_normal_(-float("inf"), 1.)
        Z(3, dtype=torch.bfloat16).log_normal_(float("inf"), 1.)
        Z(3).exponential_(float("inf"))
    """,
    "strides over another type": """
        x=A(12).view(3,4).float();; x[0].view(torch.int32).as_strided((2,),(1,))
        x=A(12.).view(3,4);; x[1].view(torch.int32).as_strided((2,2),(1,4))
        x=A(12.).view(3,4);; x[1].view(torch.int32).as_strided((2,2),(1,4),0)
        x=A(12.).view(3,4);; x[:2,1:].view(torch.int32).as_strided((2,2),(4,1),1)
        x=A(12.).view(3,4);; y=x[1].view(torch.int32).as_strided((2,),(1,));; y.fill_(0);; x
    """,
    "numbers of eight bits": """
        torch.zeros(3, dtype=torch.float8_e4m3fn, device=D).view(torch.uint8)
        torch.ones(3, dtype=torch.float8_e5m2, device=D).view(torch.uint8)
        torch.full((3,), -2.3, dtype=torch.float8_e4m3fnuz, device=D).view(torch.uint8)
        torch.full((3,), 1000, dtype=torch.float8_e4m3fn, device=D).view(torch.uint8)
        torch.full((3,), 1e9, dtype=torch.float8_e5m2, device=D).view(torch.uint8)
        x=torch.zeros(3, dtype=torch.float8_e4m3fnuz, device=D);; x.fill_(1000.)
        torch.full((3,), NAN, dtype=torch.float8_e5m2fnuz, device=D).view(torch.uint8)
        torch.full((3,), float("inf"), dtype=torch.float8_e5m2, device=D).view(torch.uint8)
        torch.empty(2, 3, dtype=torch.float8_e5m2, device=D).shape
        torch.empty_strided((2,2), (1,2), dtype=torch.float8_e5m2, device=D).stride()
        x=A(4.).to(torch.float8_e5m2);; (torch.zeros_like(x).view(torch.uint8), torch.ones_like(x).view(torch.uint8), torch.full_like(x, 3.).view(torch.uint8), torch.empty_like(x).to(torch.float32).shape, x.new_zeros(2).view(torch.uint8))
        x=A(4.).to(torch.float8_e4m3fn);; x[1:].fill_(2.5);; x.view(torch.uint8)
        x=A(4.).to(torch.float8_e4m3fn);; x[1:3].zero_();; x.view(torch.uint8)
        x=A(4.).to(torch.float8_e4m3fn);; x[0]=2.;; x.view(torch.uint8)
        torch.zeros((), dtype=torch.float8_e4m3fn, device=D).item()
        torch.eye(2, dtype=torch.float8_e4m3fn, device=D).view(torch.uint8)
    """,
    "bounds as their type reads them": """
        torch.linspace(-3, 5, 9, dtype=torch.uint8, device=D)
        torch.linspace(5, -3, 9, dtype=torch.uint8, device=D)
        torch.linspace(-3, 5, 1, dtype=torch.uint8, device=D)
        torch.linspace(-255, 0, 4, dtype=torch.uint8, device=D)
        torch.linspace(-256, 0, 4, dtype=torch.uint8, device=D)
        torch.linspace(-3, 5, 9, dtype=torch.int8, device=D)
        torch.linspace(-3., 5., 9, dtype=torch.uint8, device=D)
        torch.logspace(-3, 5, 9, base=2, dtype=torch.uint8, device=D)
        torch.logspace(5, -3, 9, base=2, dtype=torch.uint8, device=D)
        torch.arange(-3., 5., dtype=torch.uint8, device=D)
        torch.arange(-3.5, 5.5, dtype=torch.int8, device=D)
        torch.bucketize(T([True,False]), T([0.,1.]))
        torch.bucketize(T(True), T([0,1]), right=True)
        torch.bucketize(True, T([0.,1.]))
        torch.bucketize(T([True]), T([False,True]))
        torch.bucketize(T([1]), T([False,True]))
        torch.searchsorted(T([False,True]), T([0.,1.]), right=True)
        torch.searchsorted(T([0.,1.]), T([False,True]))
        torch.searchsorted(T([False,True]), T([False]))
        torch.special.gammaincc(T([5e-324]*3, dtype=torch.float64), T([.01,.5,1.], dtype=torch.float64))
        torch.special.gammaincc(T([1e-300,1e-20,1e-8], dtype=torch.float64), T([1.]*3, dtype=torch.float64)) >= 0
        x=A(36.).view(1,1,6,6);; x[0,0,0,5]=float("inf");; F.interpolate(x, size=(3,3), mode="bilinear", antialias=True)
        x=A(36.).view(1,1,6,6);; x[0,0,5,0]=float("inf");; F.interpolate(x, size=(7,7), mode="bilinear", antialias=True)
    """,
    "windows and limits": """
        torch.kaiser_window(5, device=D)
        torch.kaiser_window(6, periodic=False, dtype=torch.float64, device=D)
        torch.kaiser_window(6, True, 3., dtype=torch.float64, device=D)
        torch.kaiser_window(7, False, 3., dtype=torch.bfloat16, device=D).float()
        torch.kaiser_window(0, device=D), torch.kaiser_window(1, device=D)
        torch.kaiser_window(-1, device=D)
        torch.log1p(T([1e200+1e200j, 1e-200+1e-10j, 1e200j, -1+1e-200j, 1e308+1e308j, -1e200+3j], dtype=torch.complex128))
        torch.log1p(T([1e30+1e30j, 1e-30+1e-10j, -1+1e-30j, 0.4+0.4j, -0.4, complex(NAN, 1), complex("inf")]))
        O(*[1]*65).argmax(0)
        O(*[1]*65).argmin(-1, keepdim=True)
        O(*[1]*65).argmax()
        torch.ops.aten._local_scalar_dense(Z(0))
        Z(0).item()
    """,
    "words that say how": """
        [Z(3).scatter_reduce(0, T([0,0,2]), T([1.,-2,3]), word) for word in ("max", "min", "amax", "amin")]
        [Z(3).scatter_reduce(0, T([0,0,2]), T([1.,-2,3]), word, include_self=False) for word in ("max", "min")]
        O(3,dtype=torch.complex64).scatter_reduce(0, T([0,1]), O(2,dtype=torch.complex64), "max")
        Z(3).scatter_reduce(0, T([0,0,2]), O(3), "add")
        Z(3).scatter_reduce(0, T([0,0,2]), O(3), "multiply")
        Z(3).scatter_reduce(0, T([0,0,2]), O(3), "foo")
        Z(3).scatter_reduce(0, T([0,0,2]), O(3), "")
        Z(3).scatter(0, T([0,0,2]), O(3), reduce="sum")
        Z(3).scatter(0, T([0,0,2]), 2., reduce="sum")
        Z(3).scatter(0, T([0,0,2]), O(3), reduce="prod")
        Z(3).scatter(0, T([0,0,2]), 2., reduce="prod")
        Z(3).scatter(0, T([0,0,2]), O(3), reduce="mean")
        Z(3).scatter(0, T([0,0,2]), 2., reduce="mean")
        Z(3).scatter(0, T([0,0,2]), O(3), reduce="amax")
        Z(3).scatter(0, T([0,0,2]), 2., reduce="amax")
        Z(3).scatter(0, T([0,0,2]), O(3), reduce="max")
        Z(3).scatter(0, T([0,0,2]), 2., reduce="max")
        Z(3).scatter(0, T([0,0,2]), O(3), reduce="foo")
        Z(3).scatter(0, T([0,0,2]), 2., reduce="foo")
        x=Z(3);; x.scatter_(0, T([0,0,2]), O(3), reduce="sum");; x
        Z(3).index_reduce(0, T([0,0,2]), O(3), "sum")
        Z(3).index_reduce(0, T([0,0,2]), O(3), "add")
        Z(3).index_reduce(0, T([0,0,2]), O(3), "multiply")
        Z(3).index_reduce(0, T([0,0,2]), O(3), "max")
        Z(3).index_reduce(0, T([0,0,2]), O(3), "min")
        Z(3).index_reduce(0, T([0,0,2]), O(3), "foo")
        torch.searchsorted(A(3.), T([1.]), side="left", right=True)
        torch.searchsorted(A(3.), 1., side="left", right=True)
        torch.searchsorted(A(3.), T([1.]), side="foo", right=True)
        torch.searchsorted(A(3.), 1., side="foo", right=True)
        torch.searchsorted(A(3.), T([1.]), side="foo")
        O(3).cumsum(0, dtype=torch.bool)
        O(3).cumprod(0, dtype=torch.bool)
        [Z(0).cumsum(0, dtype=torch.bool), T(1.).cumsum(0, dtype=torch.bool)]
        torch.searchsorted(A(3.), T([1.,2]), side="right", right=False)
        torch.sparse.mm((A(12.).view(3,4)%5).to_sparse_csr(), T([[3.,-1],[2,5],[-2,4],[1,-3]]), "max")
        torch.sparse.mm((A(12.).view(3,4)%5).to_sparse_csr(), T([[3.,-1],[2,5],[-2,4],[1,-3]]), "min")
        torch.sparse.mm((A(12.).view(3,4)%5).to_sparse_csr(), T([[3.,-1],[2,5],[-2,4],[1,-3]]), "prod")
        torch.sparse.mm((A(12.).view(3,4)%5).to_sparse_csr(), T([[3.,-1],[2,5],[-2,4],[1,-3]]), "add")
        torch.sparse.mm((A(12.).view(3,4)%5).to_sparse_csr(), T([[3.,-1],[2,5],[-2,4],[1,-3]]), "foo")
        [torch.autograd.grad(torch.sparse.mm((A(12.).view(3,4)%5).to_sparse_csr(), w, word).square().sum(), w) for w in [T([[3.,-1],[2,5],[-2,4],[1,-3]]).requires_grad_()] for word in ("max", "min", "mean")]
    """,
}
